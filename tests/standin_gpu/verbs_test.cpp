// Every verb that computes, with device=cuda on the stand-in.
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

class Verbs : public StandinTest {};

TEST_F(Verbs, AResumedRunHasTheBitsOfAnUninterruptedOne) {
  write(recipe("r.precision = \"bf16\"\n"));
  for (const char* pins : {"run_dir=whole", "run_dir=parts max_duration=12ba", "run_dir=parts"}) {
    const Outcome outcome = here(std::string("tycho run x.lua device=cuda ") + pins);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
  EXPECT_EQ(numbers("whole", "loss"), numbers("parts", "loss"));
  EXPECT_TRUE(final_weights("whole") == final_weights("parts"));
}

TEST_F(Verbs, ARunResumesOnAnotherDevice) {
  for (const auto& [first, second] : {std::pair("cpu", "cuda"), std::pair("cuda", "cpu")}) {
    const std::string name = std::string("from_") + first;
    ASSERT_EQ(train(name, first, "max_duration=12ba").code, 0);
    const Outcome outcome = train(name, second);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
  expect_close(numbers("from_cpu", "loss"), numbers("from_cuda", "loss"), 2e-5);
}

TEST_F(Verbs, EvaluateAndGenerateAsOnACpu) {
  ASSERT_EQ(train("run", "cuda").code, 0);
  std::map<std::string, std::string> texts;
  std::map<std::string, double> losses;
  for (const std::string device : {"cpu", "cuda"}) {
    const Outcome text = here(
        "tycho generate run --prompt 'namespace tycho {' --max-tokens 12 --temperature 0 --device " + device);
    ASSERT_EQ(text.code, 0) << text.output;
    texts[device] = text.output;
    const Outcome eval = here("tycho eval run --json --device " + device);
    ASSERT_EQ(eval.code, 0) << eval.output;
    losses[device] = parse_json(eval.output, "eval").at("sets").at("same").at("loss");
  }
  EXPECT_EQ(texts["cpu"], texts["cuda"]);
  EXPECT_NEAR(losses["cuda"] / losses["cpu"], 1, 2e-5);
}

TEST_F(Verbs, SumsBetweenGpusStayOutOfTheSwitchUnlessTheUserSaysOtherwise) {
  const std::string fixed = "NCCL_ALGO=allreduce:^NVLS,NVLSTree;reducescatter:^NVLS,NVLSTree";
  const auto calls = [&](const std::string& name, const std::string& variables,
                         const std::string& keys = "") {
    const Outcome outcome =
        here("export TYCHO_STANDIN_CALLS=" + name + ".calls; " + variables +
             "tycho launch -n 2 run x.lua device=cuda max_duration=2ba run_dir=" + name + keys);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return text(name + ".calls.0");
  };
  EXPECT_CONTAINS(calls("fixed", ""), fixed + " ");
  EXPECT_CONTAINS(calls("own", "export NCCL_ALGO=Ring; "), "NCCL_ALGO=Ring ");
  const std::string fast = calls("fast", "unset NCCL_ALGO; ", " parallel.fast_sums=true");
  EXPECT_CONTAINS(fast, "ncclAllReduce");
  EXPECT_EQ(fast.find("NCCL_ALGO="), std::string::npos) << fast;
}

TEST_F(Verbs, AttentionInAnyOrderIsCudnnsWhereItCan) {
  const auto losses_and_calls = [&](const std::string& name, const std::string& pins) {
    const Outcome outcome =
        here("export TYCHO_STANDIN_ANY_ORDER=1 TYCHO_STANDIN_CALLS=" + name +
             ".calls; tycho run x.lua device=cuda eval.every=1000ba run_dir=" + name + pins);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    const char* note = "attention uses flash attention instead of cuDNN's: it does not support windows";
    EXPECT_EQ(outcome.output.find(note) != std::string::npos, name == "windowed_free");
    return std::pair(numbers(name, "loss"), calls_in(name + ".calls.0"));
  };
  for (const bool windowed : {false, true}) {
    const std::string window = windowed ? ", sliding_window = 8" : "";
    write(recipe_of(
        "mpt { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32" + window + " }",
        "r.precision = \"bf16\"\n"));
    const std::string name = windowed ? "windowed" : "whole";
    const auto [losses, fixed] = losses_and_calls(name, "");
    const auto [free_losses, calls] = losses_and_calls(name + "_free", " attention.deterministic=false");
    EXPECT_EQ(losses, free_losses) << "the stand-in adds in one order";
    EXPECT_EQ(fixed.count("cuDNN's attention"), 0u);
    EXPECT_EQ(calls.count("cuDNN's attention"), windowed ? 0u : 1u);
    EXPECT_EQ(calls.count("flash attention"), windowed ? 1u : 0u);
  }
}

TEST_F(Verbs, ProductsInFp8AreTheCpus) {
  for (const char* fp8 : {"tensorwise", "rowwise", "rowwise_with_gw_hp"}) {
    write(recipe_of(
        "llama { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, ffn_width = 64 }",
        std::string("r.precision, r.fp8 = \"bf16\", t.fp8 { recipe = \"") + fp8 + "\" }\n"));
    const std::string name = fp8;
    ASSERT_EQ(train(name + "_gpu", "cuda").code, 0);
    ASSERT_EQ(train(name + "_cpu", "cpu").code, 0);
    const auto gpu = numbers(name + "_gpu", "loss"), cpu = numbers(name + "_cpu", "loss");
    ASSERT_EQ(gpu.size(), cpu.size());
    for (const auto& [step, loss] : cpu) EXPECT_NEAR(gpu.at(step) / loss, 1, 3e-3) << fp8 << " step " << step;
  }
}

TEST_F(Verbs, CodesThatAreGatheredGiveTheBitsOfBf16) {
  write(recipe_of(
      "llama { width = 64, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, ffn_width = 64 }",
      "r.precision, r.fp8 = \"bf16\", t.fp8 { recipe = \"tensorwise\" }\n"));
  for (const char* gather : {"false", "true"}) {
    const Outcome outcome = here(std::string("export TYCHO_STANDIN_GPUS=4; tycho launch -n 4 run x.lua "
                                             "device=cuda parallel.dp_shard=2 parallel.tp=2 run_dir=") +
                                 gather + " fp8.gather=" + gather);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
  EXPECT_EQ(numbers("true", "loss"), numbers("false", "loss"));
}

TEST_F(Verbs, ALongPromptTakesFlashAttention) {
  write(recipe("r.precision, r.max_duration = \"bf16\", \"4ba\"\n"));
  ASSERT_EQ(train("run", "cuda").code, 0);
  const Outcome text = here(
      "TYCHO_STANDIN_CALLS=calls tycho generate run --prompt 'namespace tycho { int x; }' --max-tokens 2 "
      "--device cuda");
  ASSERT_EQ(text.code, 0) << text.output;
  EXPECT_CONTAINS(this->text("calls.0"), "flash attention 2\n");  // of two blocks, once each
}

TEST_F(Verbs, AProbeMeasuresOnOneRankAndOnTwo) {
  for (const int ranks : {1, 2}) {
    const Outcome outcome =
        here("tycho launch -n " + std::to_string(ranks) + " plan x.lua device=cuda --probe --json");
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    const Json probe = parse_json(outcome.output, "plan").at("probe");
    EXPECT_EQ(probe.at("num_steps"), 3);
    EXPECT_GT(probe.at("memory_bytes"), 0);
  }
}

TEST_F(Verbs, RanksCallEveryVerbOfTheCommunicator) {
  for (const auto& [ranks, order] : {std::pair(2, ""), {4, ""}, {2, " tree"}, {4, " tree"}}) {
    const std::string size = std::to_string(ranks);
    std::string
        start = "export TYCHO_STANDIN_GPUS=" + size + " TYCHO_NUM_RANKS=" + size +
                " TYCHO_NUM_LOCAL_RANKS=" + size +
                " TYCHO_ADDRESS=127.0.0.1 TYCHO_PORT=$((20000 + $$ % 10000)) TYCHO_TOKEN=0123456789abcdef; ",
        wait = "code=0; ";
    for (int r = 0; r < ranks; ++r) {
      const std::string rank = std::to_string(r);
      start += in_background(
          "env TYCHO_RANK=" + rank + " TYCHO_LOCAL_RANK=" + rank + " " TYCHO_COMMUNICATOR + order,
          "rank_" + rank);
      wait += "wait $rank_" + rank + " || code=$?; ";
    }
    const Outcome outcome = here(start + wait + "cat rank_*.log; exit $code");
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    for (int r = 0; r < ranks; ++r)
      EXPECT_CONTAINS(outcome.output, "rank " + std::to_string(r) + " of " + size + ": 0 failed");
  }
}

TEST_F(Verbs, MemoryThatTravelsIsRegisteredWithNccl) {
  write(recipe());
  for (const std::string shards : {"1", "2"}) {
    SCOPED_TRACE("dp_shard = " + shards);
    const auto losses_and_calls = [&](const std::string& name, const std::string& pins) {
      const Outcome outcome = here("export TYCHO_STANDIN_CALLS=" + name +
                                   ".calls; tycho launch -n 2 run x.lua device=cuda run_dir=" + name +
                                   " max_duration=6ba eval.every=1000ba parallel.dp_shard=" + shards + pins);
      EXPECT_EQ(outcome.code, 0) << outcome.output;
      return std::pair(numbers(name, "loss"), calls_in(name + ".calls.1"));
    };
    const auto [losses, calls] = losses_and_calls("registered_" + shards, " parallel.register_buffers=true");
    const auto [losses_without, without] = losses_and_calls("plain_" + shards, "");
    EXPECT_EQ(losses, losses_without);
    const auto count = [](const auto& all, const char* name) {
      return all.contains(name) ? all.at(name) : 0;
    };
    EXPECT_GE(count(calls, "ncclCommRegister"), 4) << "units of the model";
    EXPECT_EQ(count(calls, "ncclCommDeregister"), count(calls, "ncclCommRegister"));
    EXPECT_EQ(count(without, "ncclCommRegister") + count(without, "registered tensor"), 0);
    // In each of six steps: a sum of each of four units, or a gather and a scatter, of two tensors each.
    EXPECT_GE(count(calls, "registered tensor"), 6 * 4 * (shards == "2" ? 2 * 2 : 1));
  }
}

TEST_F(Verbs, StagesWithTwoNeighboursHaveAGroupForEach) {
  write(recipe("r.model.layers = 3\n"));
  const auto joined = [&](const std::string& name, int ranks, int rank) {
    const std::string n = std::to_string(ranks);
    const Outcome outcome = here(
        "export TYCHO_STANDIN_GPUS=" + n + " TYCHO_STANDIN_CALLS=" + name + ".calls; tycho launch -n " + n +
        " run x.lua device=cuda micro_batch=1sp max_duration=4ba run_dir=" + name + " parallel.pp=" + n);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return calls_in(name + ".calls." + std::to_string(rank)).at("ncclCommInitRank");
  };
  const int64_t of_two = joined("two", 2, 0);
  EXPECT_EQ(joined("first", 3, 0), of_two + 1);
  EXPECT_EQ(joined("middle", 3, 1), of_two + 2);
  const Outcome on_cpu = here("tycho run x.lua device=cpu micro_batch=1sp max_duration=4ba run_dir=cpu");
  ASSERT_EQ(on_cpu.code, 0) << on_cpu.output;
  for (const char* name : {"two", "middle"})
    expect_close(numbers(name, "loss"), numbers("cpu", "loss"), 1e-5);
}

TEST_F(Verbs, AProfileIsWritten) {
  write(recipe(
      "r.max_duration = \"6ba\"\nr.profile = { wait = \"1ba\", warmup = \"1ba\", active = \"2ba\" }\n"));
  const Outcome outcome = train("run", "cuda");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<Json> profiles = events("run", "profile");
  ASSERT_FALSE(profiles.empty()) << outcome.output;
  EXPECT_CONTAINS(text(profiles[0].at("facts").at("path").get<std::string>()), "block 1 backward");
}

TEST_F(Verbs, ATraceCountsTheCallsOfNccl) {
  write(recipe(
      "r.max_duration = \"6ba\"\nr.profile = { wait = \"1ba\", warmup = \"1ba\", active = \"2ba\" }\n"));
  const Outcome outcome = run(2, "run", "device=cuda");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<Json> profiles = events("run", "profile");
  ASSERT_FALSE(profiles.empty()) << outcome.output;
  EXPECT_CONTAINS(text(profiles[0].at("facts").at("path").get<std::string>()), "nccl::");
}

TEST_F(Verbs, AStepWaitsForTheDeviceOnceAndCopiesFromPinnedMemory) {
  write(recipe("r.eval.every, r.ckpt.every = \"1000ba\", \"1000ba\"\nr.micro_batch = \"2sp\"\n"));
  const auto few = calls_of("few", "max_duration=10ba"), many = calls_of("many", "max_duration=30ba");
  const auto per_step = [&](const std::string& name) {
    const auto of = [&](const auto& calls) { return calls.contains(name) ? calls.at(name) : 0; };
    return static_cast<double>(of(many) - of(few)) / 20;
  };
  EXPECT_LE(per_step("cudaStreamSynchronize") + per_step("cudaDeviceSynchronize") + per_step("cudaMemcpy") +
                per_step("cudaEventSynchronize"),
            1);
  EXPECT_EQ(per_step("pinned copy"), 2);    // tokens and targets of all micro-batches
  EXPECT_EQ(per_step("pageable copy"), 1);  // loss and norm
}

TEST_F(Verbs, ACheckpointLeavesThroughPinnedMemory) {
  write(recipe("r.eval.every = \"1000ba\"\n"));
  const auto few = calls_of("few", "max_duration=8ba ckpt.every=1000ba"),
             many = calls_of("many", "max_duration=8ba ckpt.every=2ba");
  EXPECT_GT(many.at("pinned copy"), few.at("pinned copy"));
  EXPECT_LE(many.at("pageable copy") - few.at("pageable copy"), 3);  // whether weights are finite
}

TEST_F(Verbs, BenchGpuGoesThroughAllItsParts) {
  const std::string bench =
      "env -u LD_PRELOAD python3 " TYCHO_SOURCE_DIR "/bench/gpu --standin --results . --build " TYCHO_BUILD;
  const Outcome some = here(bench + " --only machine,tiny");
  ASSERT_EQ(some.code, 0) << some.output;
  EXPECT_CONTAINS(some.output, "| tiny: tokens/s |");
  EXPECT_CONTAINS(some.output, "| nccl | not done |");
  const Outcome rest = here(bench);
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_EQ(rest.output.find("tiny …"), std::string::npos) << "a part that is done ran again\n"
                                                           << rest.output;
  EXPECT_EQ(rest.output.find("not done"), std::string::npos) << rest.output;
  EXPECT_CONTAINS(rest.output, "| NCCL, two ranks | loss ");
  EXPECT_CONTAINS(text("gpu-standin/report.md"), "no number here is a measurement");
}

}  // namespace
}  // namespace tycho
