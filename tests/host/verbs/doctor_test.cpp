// tycho doctor: what it looks at, and a project's own checks.
#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using DoctorTest = ShellTest;

std::map<std::string, Json> findings(const Outcome& outcome) {
  std::map<std::string, Json> found;
  for (const Json& one : Json::parse(outcome.output)) found[one.at("subject")] = one;
  return found;
}

TEST_F(DoctorTest, LooksAtTheMachineAndLeavesNothingBehind) {
  const Outcome seen = here("tycho doctor --json 2>/dev/null");
  const auto found = findings(seen);
  for (const char* subject : {"cpu", "memory", "gpu", "engine", "lua", "disk space", "disk speed",
                              "file links", "open files", "slurm"})
    EXPECT_TRUE(found.contains(subject)) << subject;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  const Outcome lines = here("tycho doctor");
  EXPECT_CONTAINS(lines.output, "ok    slurm         not inside a job");
}

TEST_F(DoctorTest, ChecksOfAProjectReportTheirFindings) {
  std::filesystem::create_directories(folder_ / "doctor");
  write("return function(d) return \"ok\", d.exists(\"/proc\") and \"there\" or \"gone\" end\n",
        "doctor/a.lua");
  write("return function(d) return \"fail\", \"no scratch\", \"ask for one\" end\n", "doctor/b.lua");
  write("return function(d) return os.execute(\"true\") end\n", "doctor/c.lua");
  write("return 3\n", "doctor/d.lua");
  write("return function( end\n", "doctor/e.lua");
  write("return function() return \"fine\", \"x\" end\n", "doctor/f.lua");
  const Outcome seen = here("tycho doctor --json 2>/dev/null");
  EXPECT_EQ(seen.code, 1);
  auto found = findings(seen);
  EXPECT_EQ(found["a"].at("text"), "there");
  EXPECT_EQ(found["b"].at("advice"), "ask for one");
  for (const char* broken : {"c", "d", "e", "f"}) EXPECT_EQ(found[broken].at("level"), "fail") << broken;
  EXPECT_CONTAINS(found["c"].at("text").get<std::string>(), "os is not available");
  EXPECT_CONTAINS(found["f"].at("text").get<std::string>(), "it must return \"ok\"");
}

/// Puts a program nvidia-smi before all others, which answers with these lines.
std::string nvidia_smi_says(const std::string& lines, int code = 0) {
  return fmt::format(
      "mkdir -p bin && printf '#!/bin/sh\\necho \"$@\" >asked.txt\\ncat answer.txt\\nexit {}\\n' "
      ">bin/nvidia-smi && "
      "printf '{}' >answer.txt && chmod +x bin/nvidia-smi && export PATH=$PWD/bin:$PATH && tycho doctor "
      "--json "
      "2>/dev/null",
      code, lines);
}

TEST_F(DoctorTest, GpusWithFixedClocksAreFine) {
  const std::string lines = "0, Enabled, 1980, 2619, 1980, 2619\\n1, Enabled, 1980, 2619, 1980, 2619";
  auto found = findings(here(nvidia_smi_says(lines)));
  EXPECT_EQ(found["persistence"].at("level"), "ok");
  EXPECT_EQ(found["gpu clocks"].at("text"), "applications run at up to 1980 MHz");
  EXPECT_CONTAINS(here("cat asked.txt").output, "--query-gpu=index,persistence_mode,clocks.max.sm");
}

TEST_F(DoctorTest, GpusThatAreNotSetUpSayHow) {
  const std::string lines = "0, Enabled, 1980, 2619, 1980, 2619\\n1, Disabled, 1980, 2619, 1755, 2619";
  auto found = findings(here(nvidia_smi_says(lines)));
  EXPECT_EQ(found["persistence"].at("level"), "warn");
  EXPECT_EQ(found["persistence"].at("text"), "not enabled on GPU 1");
  EXPECT_EQ(found["gpu clocks"].at("text"), "GPU 1: 1755 of 1980 MHz");
  EXPECT_CONTAINS(found["gpu clocks"].at("advice").get<std::string>(), "sudo nvidia-smi -ac 2619,1980");
}

TEST_F(DoctorTest, AnAnswerOfNvidiaSmiMayLackClocksOrBeAnError) {
  auto found = findings(here(nvidia_smi_says("0, Enabled, 1980, 2619, [N/A], [N/A]")));
  EXPECT_EQ(found["persistence"].at("level"), "ok");
  EXPECT_FALSE(found.contains("gpu clocks"));
  found = findings(here(nvidia_smi_says("No devices were found", 6)));
  EXPECT_EQ(found["gpu settings"].at("text"), "nvidia-smi fails: No devices were found");
}

TEST_F(DoctorTest, AnOldLibTorchIsAFailure) {
  install(TYCHO_FAKE_ENGINE);
  auto found =
      findings(here("export TYCHO_FAKE_VERSIONS='{\"libtorch\": \"2.9.1\", \"libtorch_problem\": \"expected "
                    "2.11\"}'; bin/tycho "
                    "doctor --json"));
  EXPECT_EQ(found["engine"].at("level"), "fail");
  EXPECT_EQ(found["engine"].at("advice"), "expected 2.11");
  EXPECT_EQ(findings(here("bin/tycho doctor --json"))["engine"].at("level"), "ok");
}

TEST_F(DoctorTest, ADriverWithoutAGpuThatCudaCanUseIsAFailure) {
  install(TYCHO_FAKE_ENGINE);
  const auto cuda = [&](const std::string& gpus) {
    return findings(here("export TYCHO_FAKE_VERSIONS='" + gpus + "'; bin/tycho doctor --json"))["cuda"];
  };
  const Json old =
      cuda(R"~({"gpus": 0, "has_driver": true, "gpu_problem": "CUDA finds none: too old (35)"})~");
  EXPECT_EQ(old.at("level"), "fail");
  EXPECT_EQ(old.at("text"), "CUDA finds none: too old (35)");
  EXPECT_EQ(cuda(R"({"gpus": 0, "has_driver": false, "gpu_problem": "CUDA finds none"})").at("level"), "ok");
  EXPECT_EQ(cuda(R"({"gpus": 8})").at("text"), "8 GPUs");
  const auto nvrtc = [&](const std::string& gpus) {
    return findings(here("export TYCHO_FAKE_VERSIONS='" + gpus + "'; bin/tycho doctor --json"))["nvrtc"];
  };
  EXPECT_EQ(nvrtc(R"({"gpus": 8, "nvrtc": "13.0", "nvrtc_path": "/a/b.so"})").at("text"), "13.0 in /a/b.so");
  EXPECT_EQ(nvrtc(R"({"gpus": 8, "nvrtc_problem": "expected NVRTC"})").at("level"), "warn");
  const auto flash_3 = [&](const std::string& gpus) {
    return findings(
        here("export TYCHO_FAKE_VERSIONS='" + gpus + "'; bin/tycho doctor --json"))["flash_attn_3"];
  };
  EXPECT_EQ(flash_3(R"({"gpus": 8, "flash_attn_3": ""})").at("text"), "not found");
  EXPECT_EQ(flash_3(R"({"gpus": 8, "flash_attn_3": "/a/b.so"})").at("text"), "/a/b.so");
  const Json other = flash_3(R"({"gpus": 8, "flash_attn_3": "/a/b.so", "flash_attn_3_problem": "expected"})");
  EXPECT_EQ(other.at("level"), "warn");
  EXPECT_EQ(other.at("text"), "expected");
  EXPECT_TRUE(cuda("{}").is_null());
}

TEST_F(DoctorTest, AFolderThatCannotBeWrittenIsAFailure) {
  const Outcome seen = here("tycho doctor /proc/1");
  EXPECT_EQ(seen.code, 1);
  EXPECT_CONTAINS(seen.output, "choose another folder");
}

}  // namespace
}  // namespace tycho
