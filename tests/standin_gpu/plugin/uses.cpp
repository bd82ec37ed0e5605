// Finds the runs of consecutive bytes of tensors.
#include "tests/standin_gpu/plugin/uses.h"

#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace standin {
namespace {

struct Dim {
  int64_t size, step;  // in elements
};

void add_bytes(Uses& uses, const char* data, size_t bytes, bool written) {
  written ? uses.write(data, bytes) : uses.read(data, bytes);
}

/// Runs of all dims from `at` on.
void add_runs(Uses& uses, const std::vector<Dim>& dims, size_t at, const char* data, size_t run_bytes,
              size_t width, bool written) {
  if (at == dims.size()) return add_bytes(uses, data, run_bytes, written);
  for (int64_t i = 0; i < dims[at].size; ++i)
    add_runs(uses, dims, at + 1, data + i * dims[at].step * static_cast<int64_t>(width), run_bytes, width,
             written);
}

}  // namespace

void add_uses(Uses& uses, const at::Tensor& x, bool written) {
  if (!x.defined() || x.numel() == 0 || !(x.is_cuda() || x.is_cpu())) return;
  std::vector<Dim> dims;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (x.size(i) > 1 && x.stride(i) != 0) dims.push_back({x.size(i), x.stride(i)});
  std::sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.step > b.step; });
  int64_t run = 1;
  while (!dims.empty() && dims.back().step == run) {
    run *= dims.back().size;
    dims.pop_back();
  }
  add_runs(uses, dims, 0, static_cast<const char*>(x.const_data_ptr()),
           static_cast<size_t>(run) * x.element_size(), x.element_size(), written);
}

Uses uses_of(const tycho::KernelWork& work) {
  Uses uses;
  for (const tycho::Access& one : work.accesses)
    for (int64_t row = 0; row < one.rows; ++row)
      add_bytes(uses, static_cast<const char*>(one.data) + row * one.step_bytes,
                static_cast<size_t>(one.row_bytes), one.written);
  return uses;
}

void enqueued_now(const std::string& name, const Uses& uses) {
  enqueued(name, c10::cuda::getCurrentCUDAStream(), uses);
}

}  // namespace standin
