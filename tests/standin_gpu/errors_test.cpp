// What goes wrong on GPUs: the error says what and where, and no rank waits for one that has gone.
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

class Errors : public StandinTest {};

TEST_F(Errors, OutOfMemoryInAStepSaysWhatToDo) {
  // The last memory that a run takes is not there.
  const Outcome whole = train("whole", "cuda", "", "export TYCHO_STANDIN_CALLS=calls;");
  ASSERT_EQ(whole.code, 0) << whole.output;
  const std::string calls = text("calls.0");
  const size_t at = calls.find("cudaMalloc ");
  ASSERT_NE(at, std::string::npos);
  const std::string last = calls.substr(at + 11, calls.find('\n', at) - at - 11);
  const Outcome outcome = train("short", "cuda", "", "export TYCHO_STANDIN_FAIL=cudaMalloc:" + last + "+:2;");
  EXPECT_EQ(outcome.code, 14) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "[memory] CUDA out of memory");
  EXPECT_CONTAINS(outcome.output, "`tycho plan` shows what a run takes");
}

TEST_F(Errors, AModelThatDoesNotFitEndsWith14) {
  const std::string pins = "model.width=1024 model.ffn_width=4096", small = "export TYCHO_STANDIN_MB=64;";
  const Outcome refused = train("run", "cuda", pins, small);
  EXPECT_EQ(refused.code, 14) << refused.output;
  EXPECT_CONTAINS(refused.output, "[memory] not enough memory: this run takes ");
  EXPECT_CONTAINS(refused.output, ", and the GPU has 67.1 MB free\nmemory per rank\n");
  const Outcome forced = train("run", "cuda", pins + " --force", small);
  EXPECT_EQ(forced.code, 14) << forced.output;
  EXPECT_CONTAINS(forced.output, "[memory] CUDA out of memory");
}

TEST_F(Errors, AKernelThatFailsEndsTheRun) {
  const Outcome outcome = train("run", "cuda", "", "export TYCHO_STANDIN_FAIL=adamw_step:30:719;");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "[adamw_step] the GPU rejected the kernel: unspecified launch failure");
}

TEST_F(Errors, ACopyThatFailsEndsTheRunAndItsCheckpointsStay) {
  const auto calls = calls_of("whole", "");
  const std::string late = std::to_string(calls.at("cudaMemcpyAsync") * 3 / 4);
  const Outcome outcome =
      train("run", "cuda", "", "export TYCHO_STANDIN_FAIL=cudaMemcpyAsync:" + late + ":700;");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "[torch] CUDA error: an illegal memory access was encountered");
  const Outcome again = train("run", "cuda");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(numbers("run", "loss"), numbers("whole", "loss"));
}

TEST_F(Errors, WithoutADeviceARunSaysSo) {
  const Outcome outcome = train("run", "cuda", "", "export TYCHO_STANDIN_GPUS=0;");
  EXPECT_EQ(outcome.code, 11) << outcome.output;
  EXPECT_CONTAINS(outcome.output,
                  "[device] expected a GPU (device = \"cuda\"), CUDA finds none: no CUDA-capable device is "
                  "detected (100); the driver supports CUDA 13.0, 13.0 is used here; ");
}

TEST_F(Errors, AnOldDriverIsNamedWithTheOneNeeded) {
  const std::string old = "export TYCHO_STANDIN_FAIL=cudaGetDeviceCount:1+:35 TYCHO_STANDIN_DRIVER=12040;";
  const Outcome outcome = train("run", "cuda", "", old);
  EXPECT_EQ(outcome.code, 11) << outcome.output;
  const std::string reason =
      "CUDA finds none: CUDA driver version is insufficient for CUDA runtime version (35); the driver "
      "supports CUDA 12.4, and CUDA 13.0 needs driver 580 or newer: update it";
  EXPECT_CONTAINS(outcome.output, reason);
  const Outcome doctor = here(old + "tycho doctor");
  EXPECT_EQ(doctor.code, 1) << doctor.output;
  EXPECT_CONTAINS(doctor.output, "fail  cuda          " + reason);
}

TEST_F(Errors, ABadListOfVisibleDevicesIsShown) {
  const Outcome outcome = train("run", "cuda", "", "export TYCHO_STANDIN_GPUS=0 CUDA_VISIBLE_DEVICES=7;");
  EXPECT_EQ(outcome.code, 11) << outcome.output;
  EXPECT_CONTAINS(outcome.output,
                  "; CUDA_VISIBLE_DEVICES is \"7\": it must name GPUs that `nvidia-smi -L` lists");
}

TEST_F(Errors, DoctorCountsTheGpusThatCudaFinds) {
  const std::string output = here("tycho doctor").output;
  EXPECT_CONTAINS(output, "ok    cuda          2 GPUs");
  EXPECT_CONTAINS(output, "ok    nvrtc         13.92 in ");
}

// Why LibTorch 2.11 is required.
TEST_F(Errors, SumsInFp32OfProductsInBf16AreRefusedByOldReleasesOfLibTorch) {
  const Outcome outcome = train("run", "cuda", "precision=bf16 micro_batch=1sp",
                                "export TYCHO_STANDIN_TORCH=2.9 TYCHO_GEMM=aten;");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "self and mat2 must have the same dtype, but got Float and BFloat16");
}

TEST_F(Errors, MoreRanksThanDevicesAreRefused) {
  const Outcome outcome = run(3, "run", "device=cuda global_batch=12sp");
  EXPECT_EQ(outcome.code, 11) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "this machine has 2 GPUs, and local rank 2 needs its own");
}

TEST_F(Errors, ARankThatCannotJoinIsNamedByTheOther) {
  const Outcome outcome =
      here("export TYCHO_STANDIN_FAIL=ncclCommInitRank@1:1:2; " +
           by_hand("x.lua device=cuda run_dir=run", "x.lua device=cuda run_dir=run", ":"));
  EXPECT_CONTAINS(outcome.output, "codes 11 11");
  EXPECT_CONTAINS(text("rank_1.log"),
                  "[nccl] the GPUs of this run cannot reach each other: unhandled cuda error");
  EXPECT_CONTAINS(text("rank_0.log"),
                  "[parallel] rank 1 ended the run: [nccl] the GPUs of this run cannot reach");
}

TEST_F(Errors, MemoryThatRunsOutOnTwoRanksHalvesAChosenMicroBatchOnBoth) {
  write(
      recipe("r.seq_len, r.global_batch, r.max_duration = 512, \"16sp\", \"4ba\"\n"
             "r.model = t.model.llama { width = 64, layers = 2, heads = 4, kv_heads = 2, ffn_width = 256, "
             "vocab_size = 300 }\nr.train_data = t.data.mds { local_dir = \"long\" }\nr.eval_data.same = "
             "r.train_data\n"
             "r.machine, r.micro_batch = \"h100\", \"auto\"\n"));
  const Outcome outcome =
      here("tycho data convert " + texts() + " --tokenizer " + (data_ / "tokenizer.json").string() +
           " --concat-tokens 512 --no-separator --out long >/dev/null; export TYCHO_STANDIN_MB=49; "
           "tycho launch -n 2 run x.lua device=cuda run_dir=run");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "CUDA out of memory");
  EXPECT_CONTAINS(outcome.output, "\nstarting again with micro_batch=2sp instead of micro_batch=4sp");
  EXPECT_EQ(outcome.output.find("[rank 1] starting again"), std::string::npos) << outcome.output;
  EXPECT_EQ(numbers("run", "loss").size(), 4U);
}

TEST_F(Errors, ABufferThatNcclCannotRegisterEndsBothRanks) {
  const std::string arguments = "x.lua device=cuda run_dir=run parallel.register_buffers=true";
  const Outcome outcome =
      here("export TYCHO_STANDIN_FAIL=ncclCommRegister@1:2:2; " + by_hand(arguments, arguments, ":"));
  EXPECT_CONTAINS(outcome.output, "codes 11 11");
  const std::string what = "[nccl] a buffer could not be registered: unhandled cuda error";
  EXPECT_CONTAINS(text("rank_1.log"), what);
  EXPECT_CONTAINS(text("rank_1.log"),
                  "; set parallel.register_buffers = false to do without; NCCL_DEBUG=INFO prints more");
  EXPECT_CONTAINS(text("rank_0.log"), "[parallel] rank 1 ended the run: " + what);
}

TEST_F(Errors, ASumThatFailsOnOneGpuEndsBothRanks) {
  const Outcome outcome =
      here("export TYCHO_STANDIN_FAIL='nccl async error@1:20:3'; " +
           by_hand("x.lua device=cuda run_dir=run", "x.lua device=cuda run_dir=run", ":"));
  EXPECT_CONTAINS(outcome.output, "codes 11 11");
  EXPECT_CONTAINS(text("rank_1.log"), "[nccl] rank 1: a collective failed on its GPU: internal error");
  EXPECT_CONTAINS(text("rank_0.log"), "[parallel] rank 1 ended the run: [nccl] rank 1: a collective failed");
}

TEST_F(Errors, AKernelThatFailsOnOneRankEndsBoth) {
  write(recipe("r.max_duration = \"100000ba\"\n"));
  const Outcome outcome =
      here("export TYCHO_STANDIN_FAIL=adamw_step@1:40:719; " +
           by_hand("x.lua device=cuda run_dir=run", "x.lua device=cuda run_dir=run", ":"));
  EXPECT_CONTAINS(outcome.output, "codes 1 1");
  EXPECT_CONTAINS(text("rank_0.log"),
                  "[parallel] rank 1 ended the run: [adamw_step] the GPU rejected the kernel");
}

TEST_F(Errors, AKilledRankIsNamedAndTheOtherEnds) {
  write(recipe("r.max_duration = \"100000ba\"\n"));
  for (const int killed : {0, 1}) {
    const std::string run = "run" + std::to_string(killed), arguments = "x.lua device=cuda run_dir=" + run;
    const Outcome outcome =
        here(by_hand(arguments, arguments, until_it_trains(run) + "kill -9 $rank_" + std::to_string(killed)));
    EXPECT_CONTAINS(outcome.output, killed == 0 ? "codes 137 143" : "codes 143 137");
    const std::string log = text("rank_" + std::to_string(1 - killed) + ".log");
    EXPECT_CONTAINS(log, "[parallel] rank " + std::to_string(killed) + " (");
    EXPECT_CONTAINS(log, "resumes from the newest checkpoint");
  }
}

}  // namespace
}  // namespace tycho
