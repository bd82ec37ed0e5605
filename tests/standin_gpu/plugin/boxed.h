// ATen's operators on the stand-in.
#pragma once
#include <torch/library.h>

#include <string>

namespace standin {

/// Replaces LibTorch's CUDA kernels by the CPU's. Called once, when libtorch_cuda.so is loaded.
void put_operators_on_the_cpu();

// host_side.cpp
/// Tells the checker of the host's ranges, and of its copies from and to pinned memory.
void watch_the_host();
/// Lives while the CPU stands in for a device: its copies are not the host's.
struct InOperator {
  InOperator();
  ~InOperator();
  InOperator(const InOperator&) = delete;
  InOperator& operator=(const InOperator&) = delete;
};

// own_entries.cpp: operators that the CPU does not have.
bool has_own_entry(const std::string& name);
void put_own_entries(torch::Library& library);

}  // namespace standin
