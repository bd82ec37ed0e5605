// The model of a machine's GPUs, read from files of a pretended driver.
#include "host/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"

namespace tycho {
namespace {

TEST(Machine, TheModelOfTheFirstGpuIsTheDrivers) {
  const TempDir root;
  EXPECT_EQ(gpu_model(root.path()), "") << "no driver";
  for (const auto& [address, model] :
       {std::pair("0000:1b:00.0", "NVIDIA H100 80GB HBM3"), {"0000:ab:00.0", "Other"}}) {
    const std::filesystem::path folder =
        std::filesystem::path(root.path()) / "proc/driver/nvidia/gpus" / address;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "information") << "Model: \t\t " << model << "\nIRQ:   \t\t 52\n";
  }
  EXPECT_EQ(gpu_model(root.path()), "NVIDIA H100 80GB HBM3");
}

}  // namespace
}  // namespace tycho
