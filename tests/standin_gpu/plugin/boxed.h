// ATen's operators on the stand-in.
#pragma once
#include <torch/library.h>

#include <string>

namespace standin {

/// Replaces LibTorch's CUDA kernels by the CPU's. Called once, when libtorch_cuda.so is loaded.
void put_operators_on_the_cpu();

// own_entries.cpp: operators that the CPU does not have.
bool has_own_entry(const std::string& name);
void put_own_entries(torch::Library& library);

}  // namespace standin
