// What the stand-in for a GPU knows: devices, who owns which memory, how often each call was made, and which
// is to fail.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace standin {

/// Lets events that are recorded from now on be so much later.
void pretend_ms(double ms);

/// Where `cudaStream_t` points to; null, 1 and 2 are a device's own streams, as CUDA has them.
struct Stream {
  int device = 0;
};
struct Event {
  int device = 0;
  long number = 0;  // of no other event
  bool recorded = false;
  double recorded_ms = 0;
};

/// TYCHO_STANDIN_GPUS, 2 when it is not set.
int num_devices();
/// Newest CUDA of the driver: TYCHO_STANDIN_DRIVER, 13000 when it is not set.
int driver_version();
/// Multiprocessors of each device: TYCHO_STANDIN_SMS, 4 when it is not set.
int num_sms();
/// Compute capability of each device, 10 times: TYCHO_STANDIN_CAPABILITY, 90 when it is not set.
int capability();
/// Of each device: TYCHO_STANDIN_MB, 1024 when it is not set.
size_t device_bytes();
size_t free_bytes(int device);

int current_device();
void set_current_device(int device);
/// A device has a context once it was chosen or used; LibTorch asks before it chooses one.
bool has_context(int device);
int device_of(cudaStream_t stream);

/// Counts a call of `name`. What it must answer: cudaSuccess, or what TYCHO_STANDIN_FAIL asks for:
/// "cudaMemcpyAsync:12:700" fails the 12th call with code 700, "cudaMalloc@1:3+:2" those of rank 1 alone from
/// the third on. An error that a GPU does not recover from comes again at every call after it.
cudaError_t called(const char* name);
std::string rank_of_process();
/// Remembers an error for cudaGetLastError; `sticky` ones stay.
cudaError_t report(cudaError_t error, bool sticky = false);
cudaError_t last_error(bool clear);

/// Memory of the current device, filled with NaN; null when the device has no more.
void* allocate(size_t bytes);
bool release(void* pointer);
void* allocate_host(size_t bytes);
bool release_host(void* pointer);

enum class Place { kUnknown, kHost, kDevice };
struct Owner {
  Place place = Place::kUnknown;
  int device = -1;
  size_t bytes_behind = 0;  // from the pointer to the end of its allocation
};
Owner owner_of(const void* pointer);

}  // namespace standin

/// What the stand-in's plug-in calls, by name: its kernels and ATen's operators run on the CPU, so nobody
/// else would look. cudaSuccess, or the error of a GPU that is given the pointer or the stream of another
/// one.
extern "C" int standin_check_launch(const char* name, void* stream);
extern "C" int standin_check_pointer(const char* name, const void* pointer);
