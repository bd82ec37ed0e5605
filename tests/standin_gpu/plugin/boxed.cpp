// ATen's operators of a GPU, done on the CPU: every operator that has a kernel for CUDA is given one that
// looks at the same memory as CPU tensors, calls the CPU's, and takes what comes out to the device. In record
// mode tensors without memory (meta) take the place of the CPU's, and the call is written down.
#include "tests/standin_gpu/plugin/boxed.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/standin_gpu/plugin/uses.h"
#include "tests/standin_gpu/runtime/record.h"
#include "tests/standin_gpu/runtime/state.h"

namespace standin {
namespace {

/// Operators that touch no element, or only by the runtime's own calls: LibTorch's real ones stay.
const std::set<std::string>& kept() {
  static const std::set<std::string> names = {"aten::empty.memory_format",
                                              "aten::empty_strided",
                                              "aten::as_strided",
                                              "aten::as_strided_",
                                              "aten::view",
                                              "aten::view.dtype",
                                              "aten::_reshape_alias",
                                              "aten::unfold",
                                              "aten::resize_",
                                              "aten::set_",
                                              "aten::set_.source_Storage",
                                              "aten::set_.source_Storage_storage_offset",
                                              "aten::set_.source_Tensor",
                                              "aten::_local_scalar_dense",
                                              "aten::record_stream",
                                              "aten::is_set_to",
                                              "aten::_pin_memory",
                                              "aten::alias",
                                              "aten::_efficientzerotensor",
                                              "aten::_cudnn_init_dropout_state",
                                              "aten::view_as_real",
                                              "aten::view_as_complex"};
  return names;
}

class Call {
 public:
  explicit Call(const c10::OperatorHandle& op) : op_(op) {}

  void run(torch::jit::Stack* stack) {
    const InOperator in_operator;
    const size_t count = op_.schema().arguments().size(), first = stack->size() - count;
    for (size_t i = first; i < stack->size(); ++i) {
      argument_ = &op_.schema().arguments()[i - first];
      (*stack)[i] = on_cpu((*stack)[i]);
    }
    check();
    compute(stack, first);
    for (const Pair& pair : pairs_) keep_what_was_resized(pair);
    for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = on_device((*stack)[i]);
    standin_records() ? record() : tell();
  }

 private:
  struct Pair {
    at::Tensor device, cpu;
    bool is_read = true, is_written = false;
  };

  /// Use of the argument's tensors: results (out) and tensors to fill are written only.
  Pair used(const at::Tensor& device, const at::Tensor& cpu) const {
    const bool is_written = argument_->alias_info() != nullptr && argument_->alias_info()->isWrite();
    const bool fills = op_.schema().name() == "aten::zero_" || op_.schema().name() == "aten::fill_";
    return {device, cpu, !is_written || !(argument_->is_out() || fills), is_written};
  }

  /// Some operators have no kernel without memory: what they write has its shape already.
  void compute(torch::jit::Stack* stack, size_t first) const {
    try {
      op_.callBoxed(stack);
    } catch (const c10::NotImplementedError&) {
      const auto written =
          std::find_if(pairs_.begin(), pairs_.end(), [](const Pair& pair) { return pair.is_written; });
      if (!standin_records() || written == pairs_.end()) throw;
      stack->resize(first);
      stack->emplace_back(written->cpu);
    }
  }

  /// Without memory in record mode.
  static at::Tensor view_of(const at::Tensor& x) {
    const auto options = x.options().device(standin_records() ? at::kMeta : at::kCPU);
    if (standin_records()) return at::empty_strided(x.sizes(), x.strides(), options);
    return x.numel() == 0 ? at::empty(x.sizes(), options)
                          : at::from_blob(x.data_ptr(), x.sizes(), x.strides(), options);
  }

  void record() const {
    double read = 0, written = static_cast<double>(made_bytes_);
    for (const Pair& pair : pairs_) {
      if (pair.is_read) read += static_cast<double>(pair.device.nbytes());
      if (pair.is_written) written += static_cast<double>(pair.device.nbytes());
    }
    standin_record(op_.schema().name().c_str(), read, written, 0);
  }

  at::Tensor on_cpu(const at::Tensor& x) {
    if (!x.defined() || !x.is_cuda()) return x;
    device_ = x.device();
    for (const Pair& pair : pairs_)
      if (pair.device.is_same(x)) return pair.cpu;
    pairs_.push_back(used(x, view_of(x)));
    return pairs_.back().cpu;
  }

  c10::IValue on_cpu(const c10::IValue& value) {
    if (value.isTensor()) return on_cpu(value.toTensor());
    if (value.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& x : value.toTensorVector()) list.push_back(on_cpu(x));
      return list;
    }
    if (value.isList() && value.toListRef().size() > 0) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& one : value.toListRef()) {
        if (!one.isNone() && !one.isTensor()) return value;
        list.push_back(one.isNone() ? std::nullopt : std::optional<at::Tensor>(on_cpu(one.toTensor())));
      }
      return list;
    }
    if (value.isDevice() && value.toDevice().is_cuda()) {
      device_ = value.toDevice();
      return at::Device(standin_records() ? at::kMeta : at::kCPU);
    }
    return value;
  }

  at::Tensor on_device(const at::Tensor& x) {
    if (!x.defined() || !(standin_records() ? x.is_meta() : x.is_cpu()) || !device_) return x;
    for (const Pair& pair : pairs_)
      if (pair.cpu.is_same(x)) return pair.device;
    at::Tensor made = at::empty_strided(x.sizes(), x.strides(), x.options().device(*device_));
    add_uses(uses_, made, /*written=*/true);
    made_bytes_ += made.nbytes();
    if (x.numel() > 0 && !standin_records())
      at::from_blob(made.data_ptr(), x.sizes(), x.strides(), x.options()).copy_(x);
    return made;
  }

  c10::IValue on_device(const c10::IValue& value) {
    if (value.isTensor()) return on_device(value.toTensor());
    if (!value.isTensorList()) return value;
    std::vector<at::Tensor> list;
    for (const at::Tensor& x : value.toTensorVector()) list.push_back(on_device(x));
    return list;
  }

  /// A result that was empty, or too small, is the CPU's own memory now.
  static void keep_what_was_resized(const Pair& pair) {
    if (pair.cpu.sizes() == pair.device.sizes()) return;
    pair.device.resize_(pair.cpu.sizes());
    if (standin_records()) return;
    at::from_blob(pair.device.data_ptr(), pair.cpu.sizes(), pair.cpu.options()).copy_(pair.cpu);
  }

  void tell() {
    if (!device_ || !checks()) return;
    const c10::DeviceGuard guard(*device_);
    for (const Pair& pair : pairs_) add_uses(uses_, pair.device, pair.is_written);
    enqueued_now(op_.schema().name(), uses_);
  }

  /// A real operator launches on the tensors' device, which is the same for all.
  void check() const {
    if (!device_) return;
    const c10::DeviceGuard guard(*device_);
    for (const Pair& pair : pairs_) {
      if (pair.device.numel() == 0) continue;
      const int error = standin_check_pointer(op_.schema().name().c_str(), pair.device.data_ptr());
      TORCH_CHECK(error == 0, "CUDA error: ", cudaGetErrorString(static_cast<cudaError_t>(error)), " in ",
                  op_.schema().name());
    }
    const int error = called("launch");
    TORCH_CHECK(error == 0, "CUDA error: ", cudaGetErrorString(static_cast<cudaError_t>(error)));
  }

  const c10::OperatorHandle& op_;
  const c10::Argument* argument_ = nullptr;  // that is being looked at
  size_t made_bytes_ = 0;                    // of results
  Uses uses_;
  std::vector<Pair> pairs_;
  std::optional<at::Device> device_;
};

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op).run(stack); }

/// Copies of bytes are the runtime's, as on a GPU: the stand-in counts them and looks at their direction.
bool is_copy_of_bytes(const at::Tensor& to, const at::Tensor& from) {
  return to.scalar_type() == from.scalar_type() && to.sizes() == from.sizes() && to.is_contiguous() &&
         from.is_contiguous() && to.is_cuda() != from.is_cuda();
}

at::Tensor view_on_cpu(const at::Tensor& x) {
  return x.is_cuda() ? at::from_blob(x.data_ptr(), x.sizes(), x.strides(), x.options().device(at::kCPU)) : x;
}

at::Tensor& copy_(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (is_copy_of_bytes(to, from)) return at::native::copy_(to, from, non_blocking);
  if (to.numel() == 0) return to;
  const InOperator in_operator;
  for (const at::Tensor* x : {static_cast<const at::Tensor*>(&to), &from})
    if (x->is_cuda() && x->numel() > 0) {
      const c10::DeviceGuard guard(x->device());
      TORCH_CHECK(standin_check_pointer("aten::copy_", x->data_ptr()) == 0,
                  "CUDA error: an illegal memory access");
    }
  Uses uses;
  add_uses(uses, from, /*written=*/false), add_uses(uses, to, /*written=*/true);
  {
    const c10::DeviceGuard guard(to.is_cuda() ? to.device() : from.device());
    enqueued_now("aten::copy_", uses);
  }
  if (to.is_cuda() != from.is_cuda() && !non_blocking)
    cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream());
  if (standin_records() && to.is_cuda()) {
    const bool dense = to.is_contiguous() && from.is_contiguous();
    const bool cast = to.scalar_type() != from.scalar_type();
    standin_record(cast    ? "copy to another type"
                   : dense ? "copy on the device"
                           : "copy of rows apart",
                   static_cast<double>(to.numel()) * static_cast<double>(from.itemsize()),
                   static_cast<double>(to.nbytes()), 0);
    return to;
  }
  at::Tensor on_cpu = view_on_cpu(to);
  on_cpu.copy_(view_on_cpu(from));
  return to;
}

}  // namespace

void put_operators_on_the_cpu() {
  // Replacing kernels is what this is for: LibTorch need not warn of it.
  class Quiet final : public c10::WarningHandler {
    void process(const c10::Warning&) override {}
  } quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  static auto* const registrations = new std::vector<c10::RegistrationHandleRAII>;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    if (!op || !name.name.starts_with("aten::") || kept().contains(full) || has_own_entry(full) ||
        full == "aten::copy_")
      continue;
    if (!op->hasKernelForDispatchKey(c10::DispatchKey::CUDA)) continue;
    registrations->push_back(dispatcher.registerImpl(
        name, c10::DispatchKey::CUDA, c10::KernelFunction::makeFromBoxedFunction<&on_the_cpu>(), std::nullopt,
        nullptr, "stand-in GPU"));
  }
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  library.impl("copy_", TORCH_FN(copy_));
  put_own_entries(library);
  watch_the_host();
}

}  // namespace standin
