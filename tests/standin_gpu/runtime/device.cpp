// Devices of the stand-in, its streams and events. A stream does what it is given at once, in order.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tests/standin_gpu/runtime/checker.h"
#include "tests/standin_gpu/runtime/state.h"

using standin::called;
using standin::report;

namespace {

bool exists(int device) { return device >= 0 && device < standin::num_devices(); }

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::atomic<double> pretended_ms = 0;

standin::Event* of(cudaEvent_t event) { return reinterpret_cast<standin::Event*>(event); }

}  // namespace

namespace standin {
void pretend_ms(double ms) { pretended_ms = pretended_ms + ms; }
}  // namespace standin

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t error = called("cudaGetDeviceCount")) return error;
  *count = standin::num_devices();
  return *count > 0 ? cudaSuccess : report(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = standin::current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = called("cudaSetDevice")) return error;
  if (!exists(device)) return report(cudaErrorInvalidDevice);
  standin::set_current_device(device);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!exists(device)) return report(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "stand-in GPU");
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  properties->totalGlobalMem = standin::device_bytes();
  properties->major = standin::capability() / 10, properties->minor = standin::capability() % 10;
  properties->multiProcessorCount = standin::num_sms();
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->regsPerBlock = 65536;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->sharedMemPerMultiprocessor = 228 << 10;
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = i < 2 ? 1024 : 64;
    properties->maxGridSize[i] = i == 0 ? 0x7fffffff : 65535;
  }
  properties->pciBusID = device + 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!exists(device)) return report(cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, device);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    default: *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = standin::has_context(device) ? 1 : 0;
  return 0;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = called("cudaDeviceSynchronize")) return error;
  standin::host_waits_for_device("cudaDeviceSynchronize");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = standin::driver_version();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return standin::last_error(/*clear=*/true); }
cudaError_t cudaPeekAtLastError() { return standin::last_error(/*clear=*/false); }

// Stream 0 waits for streams without this flag, and they for it: nothing here orders them, so none is made.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  if (flags != cudaStreamNonBlocking) return report(cudaErrorNotSupported);
  *stream = reinterpret_cast<cudaStream_t>(new standin::Stream{standin::current_device()});
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<standin::Stream*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = called("cudaStreamQuery")) return error;
  return standin::is_told_done(-1, stream) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = called("cudaStreamSynchronize")) return error;
  standin::host_waits_for_stream("cudaStreamSynchronize", stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = called("cudaStreamWaitEvent")) return error;
  standin::stream_waits("cudaStreamWaitEvent", stream, of(event)->number);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long*,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                     size_t*) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  static std::atomic<long> num_events = 0;
  *event = reinterpret_cast<cudaEvent_t>(new standin::Event{standin::current_device(), ++num_events});
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  standin::ended_event(of(event)->number);
  delete of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = called("cudaEventRecord")) return error;
  if (of(event)->device != standin::device_of(stream)) return report(cudaErrorInvalidResourceHandle);
  of(event)->recorded = true;
  of(event)->recorded_ms = now_ms() + pretended_ms;
  standin::recorded(of(event)->number, stream);
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = called("cudaEventQuery")) return error;
  return standin::is_told_done(of(event)->number) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = called("cudaEventSynchronize")) return error;
  standin::host_waits_for_event("cudaEventSynchronize", of(event)->number);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (!of(start)->recorded || !of(end)->recorded) return report(cudaErrorInvalidResourceHandle);
  *ms = static_cast<float>(of(end)->recorded_ms - of(start)->recorded_ms);
  return cudaSuccess;
}

}  // extern "C"
