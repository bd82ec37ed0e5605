// Named machines, figures that replace theirs, and the rules between the keys.
#include "trainer/recipe/machine.h"

#include <gtest/gtest.h>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

std::vector<std::string> problems_of(const MachineConfig& machine) {
  ConfigProblems problems;
  check(machine, problems);
  std::vector<std::string> texts;
  for (const ConfigProblem& one : problems.take()) texts.push_back(one.path + ": " + one.message);
  return texts;
}

TEST(MachineConfig, KnowsTheNodesOfTheWalkThroughs) {
  for (const char* name : {"h100", "h200"}) {
    const Machine machine = machine_of({.name = name});
    EXPECT_EQ(machine.gpus_per_node, 8) << name;
    EXPECT_EQ(machine.nvlink_gpus, 8) << name;
    EXPECT_EQ(machine.peak_bf16, 989.5e12) << name;
  }
  EXPECT_LT(machine_of({.name = "h100"}).memory_bytes, machine_of({.name = "h200"}).memory_bytes);
  EXPECT_EQ(machine_of({.name = "gb200"}).gpus_per_node, 4);
  EXPECT_EQ(machine_of({.name = "gb200"}).nvlink_gpus, 72) << "an NVL72 rack";
}

TEST(MachineConfig, FiguresReplaceThoseOfTheName) {
  const Machine machine = machine_of({.name = "h100",
                                      .gpu = "H100 NVL",
                                      .memory = Bytes{1000},
                                      .peak_tflops = 835,
                                      .gpus_per_node = 4,
                                      .nvlink_gb_s = 100,
                                      .network_gb_s = 25,
                                      .network_us = 5,
                                      .efficiency = 0.4});
  EXPECT_EQ(machine.gpu, "H100 NVL");
  EXPECT_EQ(machine.memory_bytes, 1000);
  EXPECT_EQ(machine.peak(Precision::kBf16), 835e12);
  EXPECT_EQ(machine.gpus_per_node, 4);
  EXPECT_EQ(machine.nvlink_gpus, 4) << "those of a node when nobody says otherwise";
  EXPECT_EQ(machine.nvlink_rate, 100e9);
  EXPECT_EQ(machine.network_rate, 25e9);
  EXPECT_DOUBLE_EQ(machine.network_s, 5e-6);
  EXPECT_EQ(machine.efficiency, 0.4);
}

TEST(MachineConfig, RanksOfACpuMachineShareIt) {
  const Machine machine = machine_of({.name = "cpu"}, {.memory_bytes = 1 << 30, .cores = 8}, 4);
  EXPECT_EQ(machine.memory_bytes, (1 << 30) / 4);
  EXPECT_EQ(machine.gpus_per_node, 4);
  EXPECT_EQ(machine.gpu, "");
  EXPECT_DOUBLE_EQ(machine.peak_fp32,
                   machine_of({.name = "cpu"}, {.memory_bytes = 1, .cores = 2}, 1).peak_fp32);
}

TEST(MachineConfig, NamesWhatIsWrong) {
  EXPECT_TRUE(problems_of({}).empty());
  EXPECT_TRUE(problems_of({.name = "h100"}).empty());
  EXPECT_EQ(problems_of({.name = "v100"}),
            (std::vector<std::string>{"machine.name: expected one of h100, h200, gb200, cpu, custom, got "
                                      "\"v100\"; figures of your own: machine = "
                                      "{ name = \"custom\", memory = ..., peak_tflops = ... }"}));
  EXPECT_EQ(
      problems_of({.network_gb_s = 12}),
      (std::vector<std::string>{"machine.network_gb_s: has no effect without machine.name; remove it"}));
  EXPECT_EQ(problems_of({.name = "custom"}).size(), 5u);
  EXPECT_EQ(problems_of({.name = "h100", .memory = Bytes{0}}),
            (std::vector<std::string>{"machine.memory: must be more than 0"}));
}

TEST(MachineConfig, IsFoundByTheModelOfItsGpus) {
  EXPECT_EQ(machine_of_gpu("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(machine_of_gpu("NVIDIA H200"), "h200");
  EXPECT_EQ(machine_of_gpu("NVIDIA GB200"), "gb200");
  for (const char* name : {"h100", "h200", "gb200"}) {
    MachineConfig config;
    config.name = name;
    EXPECT_EQ(machine_of_gpu(machine_of(config).gpu), name);
  }
  EXPECT_EQ(machine_of_gpu("NVIDIA H100 PCIe"), "") << "it has other figures";
  EXPECT_EQ(machine_of_gpu("NVIDIA GH200 480GB"), "");
  EXPECT_EQ(machine_of_gpu(""), "");
}

TEST(MachineConfig, ChangesNothingThatIsTrained) {
  TrainConfig config;
  const std::string hash = config_hash(config_to_json(config));
  config.machine.name = "h200";
  EXPECT_EQ(config_hash(config_to_json(config)), hash);
}

}  // namespace
}  // namespace tycho
