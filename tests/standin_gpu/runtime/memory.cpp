// Memory of the stand-in: that of devices, pinned memory of the host, and copies between them.
#include <cstring>

#include "tests/standin_gpu/runtime/checker.h"
#include "tests/standin_gpu/runtime/record.h"
#include "tests/standin_gpu/runtime/state.h"

using standin::called;
using standin::Owner;
using standin::Place;
using standin::report;

namespace {

/// In record mode larger copies leave device memory untouched, so that it takes no memory of this machine.
constexpr size_t kSmallCopy = 4096;

/// Whether `bytes` at the pointer lie in one allocation; memory of the host that CUDA does not know may be
/// anything.
bool fits(const Owner& owner, size_t bytes) {
  return owner.place == Place::kUnknown || bytes <= owner.bytes_behind;
}

cudaError_t copy(const char* name, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  if (const cudaError_t error = called(name)) return error;
  const Owner target = standin::owner_of(to), source = standin::owner_of(from);
  if (bytes > 0 && (!fits(target, bytes) || !fits(source, bytes))) return report(cudaErrorInvalidValue);
  const bool to_device = target.place == Place::kDevice, from_device = source.place == Place::kDevice;
  const bool agrees = kind == cudaMemcpyDefault || bytes == 0 ||
                      (to_device == (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
                       from_device == (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice));
  if (!agrees) return report(cudaErrorInvalidMemcpyDirection);
  // How a real GPU would copy it: only pinned memory lets the host go on.
  if (to_device != from_device)
    called((to_device ? source : target).place == Place::kHost ? "pinned copy" : "pageable copy");
  standin::enqueued(name, stream, standin::Uses().read(from, bytes).write(to, bytes));
  if (!standin_records()) {
    std::memmove(to, from, bytes);
    return cudaSuccess;
  }
  const char* way =
      from_device ? to_device ? "copy on the device" : "copy to the host" : "copy to the device";
  standin_record(way, static_cast<double>(bytes), static_cast<double>(bytes), 0);
  if (bytes <= kSmallCopy || !to_device) std::memmove(to, from, bytes);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (const cudaError_t error = called("cudaMalloc")) return error;
  *pointer = standin::allocate(bytes);
  return *pointer == nullptr ? report(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  if (const cudaError_t error = called("cudaFree")) return error;
  return pointer == nullptr || standin::release(pointer) ? cudaSuccess : report(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  if (const cudaError_t error = called("cudaHostAlloc")) return error;
  *pointer = standin::allocate_host(bytes);
  return *pointer == nullptr ? report(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFreeHost(void* pointer) {
  return pointer == nullptr || standin::release_host(pointer) ? cudaSuccess : report(cudaErrorInvalidValue);
}
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return called("cudaHostRegister"); }
cudaError_t cudaHostUnregister(void*) { return called("cudaHostUnregister"); }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (const cudaError_t error = called("cudaMemGetInfo")) return error;
  *free = standin::free_bytes(standin::current_device());
  *total = standin::device_bytes();
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = copy("cudaMemcpy", to, from, bytes, kind, nullptr)) return error;
  standin::host_waits_for_stream("cudaMemcpy", nullptr);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy("cudaMemcpyAsync", to, from, bytes, kind, stream);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return copy("cudaMemcpyPeerAsync", to, from, bytes, cudaMemcpyDefault, stream);
}
cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return cudaMemsetAsync(pointer, value, bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = called("cudaMemset")) return error;
  if (const int error = standin_check_pointer("cudaMemset", pointer)) return static_cast<cudaError_t>(error);
  standin::enqueued("cudaMemset", stream, standin::Uses().write(pointer, bytes));
  standin_record("fill", 0, static_cast<double>(bytes), 0);
  if (!standin_records()) std::memset(pointer, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const Owner owner = standin::owner_of(pointer);
  *attributes = {};
  attributes->device = owner.place == Place::kDevice ? owner.device : standin::current_device();
  attributes->type = owner.place == Place::kDevice ? cudaMemoryTypeDevice
                     : owner.place == Place::kHost ? cudaMemoryTypeHost
                                                   : cudaMemoryTypeUnregistered;
  if (owner.place == Place::kDevice) attributes->devicePointer = const_cast<void*>(pointer);
  if (owner.place == Place::kHost)
    attributes->hostPointer = attributes->devicePointer = const_cast<void*>(pointer);
  return cudaSuccess;
}

}  // extern "C"
