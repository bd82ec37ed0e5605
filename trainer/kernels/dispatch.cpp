// Finds tables and raw pointers for tensors.
#include "trainer/kernels/dispatch.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <sstream>

#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string describe(at::IntArrayRef shape, at::ScalarType dtype, bool contiguous, const at::Device& device) {
  std::ostringstream text;
  text << dtype << ' ' << shape << (contiguous ? " contiguous" : " not contiguous") << " on " << device;
  return text.str();
}

}  // namespace

const KernelTable& kernels(const Tensor& on) { return on.is_cpu() ? cpu_kernels() : cuda_kernels(); }

Stream stream_of(const Tensor& on) {
  if (on.is_cpu()) return nullptr;
  const c10::impl::VirtualGuardImpl device(on.device().type());
  if (device.getDevice() != on.device()) device.setDevice(on.device());
  return device.getStream(on.device()).native_handle();
}

Dtype dtype_of(std::string_view op, const Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return Dtype::kFp32;
  TYCHO_CHECK(tensor.scalar_type() == at::kBFloat16, "[{}] expected fp32 or bf16, got {}", op,
              c10::toString(tensor.scalar_type()));
  return Dtype::kBf16;
}

float* data_or_null(Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr; }

void check_tensor(std::string_view op, std::string_view name, const Tensor& tensor, at::IntArrayRef shape,
                  at::ScalarType dtype, const at::Device& device) {
  TYCHO_CHECK(tensor.defined(), "[{}] {}: expected {}, got no tensor", op, name,
              describe(shape, dtype, true, device));
  if (tensor.sizes() == shape && tensor.scalar_type() == dtype && tensor.device() == device &&
      tensor.is_contiguous())
    return;
  fail(ExitCode::kFailure, "[{}] {}: expected {}, got {}", op, name, describe(shape, dtype, true, device),
       describe(tensor.sizes(), tensor.scalar_type(), tensor.is_contiguous(), tensor.device()));
}

int64_t row_step(std::string_view op, std::string_view name, const Tensor& tensor, at::IntArrayRef shape,
                 at::ScalarType dtype, const at::Device& device) {
  if (tensor.defined() && tensor.dim() == 2 && tensor.sizes() == shape && tensor.scalar_type() == dtype &&
      tensor.device() == device && tensor.stride(1) == 1 && tensor.stride(0) >= tensor.size(1))
    return tensor.stride(0);
  check_tensor(op, name, tensor, shape, dtype, device);
  return shape[1];
}

RowsShape rows_of(std::string_view op, std::string_view name, const Tensor& tensor) {
  TYCHO_CHECK(tensor.defined() && tensor.dim() == 2, "[{}] {}: expected a matrix [N, D], got {} dims", op,
              name, tensor.defined() ? tensor.dim() : 0);
  return {tensor.size(0), tensor.size(1)};
}

}  // namespace tycho
