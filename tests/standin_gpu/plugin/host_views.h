// A device's memory as tensors of the CPU, for operators that are computed there.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <initializer_list>

#include "tests/standin_gpu/plugin/uses.h"

namespace standin {

/// Returns a CPU tensor over the same memory.
inline at::Tensor on_cpu(const at::Tensor& x) {
  return x.defined() && x.is_cuda()
             ? at::from_blob(x.data_ptr(), x.sizes(), x.strides(), x.options().device(at::kCPU))
             : x;
}
inline at::Tensor wide(const at::Tensor& x) { return on_cpu(x).to(at::kFloat); }

inline void put(const at::Tensor& to, const at::Tensor& cpu) { on_cpu(to).copy_(cpu); }
inline at::Tensor on_device(const at::Tensor& cpu, const at::Tensor& like) {
  at::Tensor made = at::empty(cpu.sizes(), like.options().dtype(cpu.scalar_type()));
  if (cpu.numel() > 0) put(made, cpu);
  return made;
}
/// Tells the checker of an operator on the current stream.
inline void tell(const char* name, std::initializer_list<at::Tensor> read,
                 std::initializer_list<at::Tensor> written) {
  Uses uses;
  for (const at::Tensor& x : read) add_uses(uses, x, /*written=*/false);
  for (const at::Tensor& x : written) add_uses(uses, x, /*written=*/true);
  enqueued_now(name, uses);
}

}  // namespace standin
