// The message when CUDA finds no GPU.
#include "trainer/device/gpu_driver.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

DriverState state_of(int driver, const char* error = "unknown error (999)") {
  return {.error = error, .driver = driver, .runtime = 13000};
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(GpuDriver, AnOldDriverIsNamedWithTheOneNeeded) {
  const std::string text = gpu_problem(state_of(12080), {.has_control_node = true});
  expect_says(text,
              "unknown error (999); the driver supports CUDA 12.8, and CUDA 13.0 needs driver 580 or newer");
}

TEST(GpuDriver, AnOlderMinorVersionIsNotTheReason) {
  DriverState state = state_of(13000);
  state.runtime = 13020;
  const std::string text = gpu_problem(state, {.has_control_node = true, .has_memory_node = true});
  EXPECT_EQ(text.find("needs driver"), std::string::npos) << text;
  expect_says(text, "the driver supports CUDA 13.0, 13.2 is used here");
}

TEST(GpuDriver, AContainerWithoutTheDriversLibrariesIsNamed) {
  expect_says(gpu_problem(state_of(0), {.has_control_node = true}),
              "libcuda.so.1 of the driver is not found");
  expect_says(gpu_problem(state_of(0), {}),
              "no driver answers, and CUDA 13.0 needs driver 580 or newer: install it");
}

TEST(GpuDriver, TheListOfVisibleDevicesIsShownAlsoWhenItIsEmpty) {
  expect_says(gpu_problem(state_of(13000), {.visible = "7", .is_visible_set = true}),
              "CUDA_VISIBLE_DEVICES is \"7\"");
  expect_says(gpu_problem(state_of(13000), {.is_visible_set = true}), "CUDA_VISIBLE_DEVICES is \"\"");
}

TEST(GpuDriver, AMissingDeviceNodeIsNamed) {
  expect_says(gpu_problem(state_of(13000), {.has_control_node = true}), "/dev/nvidia-uvm is missing");
}

}  // namespace
}  // namespace tycho
