// Functions of NCCL that libtycho_cuda.so offers to the engine: raw pointers and streams, without NCCL's
// headers. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

struct NcclTable {
  static constexpr int kIdBytes = 128;
  enum class Number { kFp32, kFp64, kBf16, kInt32, kInt64, kByte };
  using Group = void*;

  /// Returns the version of NCCL: 22809 for 2.28.9.
  int (*version)() = nullptr;
  /// Writes an id of kIdBytes that one rank makes and all ranks join with.
  void (*make_id)(char* id) = nullptr;
  /// Joins a group on the thread's current device. Collective. Returns at once: the group is ready when its
  /// state says so.
  Group (*join)(const char* id, int rank, int num_ranks) = nullptr;
  // One thread calls a group; a second one may ask for its state and abort it at any time. An abort waits up
  // to a second for a call to return, which is at once unless it hangs. An aborted group ignores calls.

  /// Returns the state of the group, from any thread. `text` describes a failure.
  enum class State { kReady, kJoining, kPeerLost, kFailed };
  State (*state)(Group group, std::string& text) = nullptr;
  /// Sum or copy data in place, in the order of `stream`. Collective.
  void (*all_reduce)(Group group, void* data, int64_t count, Number number, Stream stream) = nullptr;
  void (*broadcast)(Group group, void* data, int64_t num_bytes, int root, Stream stream) = nullptr;
  /// Gathers data in the order of `stream`. Collective. `out` has a piece for every rank; num_bytes: of a
  /// piece.
  void (*all_gather)(Group group, const void* in, void* out, int64_t num_bytes, Stream stream) = nullptr;
  /// Sums and scatters data in the order of `stream`. Collective. `in` has a piece for every rank; count:
  /// numbers of a piece.
  void (*reduce_scatter)(Group group, const void* in, void* out, int64_t count, Number number,
                         Stream stream) = nullptr;
  /// Called by two ranks, one each, in the order of `stream`.
  void (*send)(Group group, const void* data, int64_t num_bytes, int to, Stream stream) = nullptr;
  void (*recv)(Group group, void* data, int64_t num_bytes, int from, Stream stream) = nullptr;
  /// Starts the calls between these two together, when the second one is called. Used by one thread.
  void (*begin_together)(Group group) = nullptr;
  void (*end_together)(Group group) = nullptr;
  /// Registers memory of the thread's current device that verbs will be called with. Not collective. Pass the
  /// result to deregister_buffer before the memory and the group are destroyed. nullptr: this version of NCCL
  /// has no such call.
  void* (*register_buffer)(Group group, void* data, int64_t num_bytes) = nullptr;
  void (*deregister_buffer)(Group group, void* registration) noexcept = nullptr;
  /// Ends calls in flight, without the others. From any thread; results of these calls are garbage. The group
  /// stays until destroy().
  void (*abort)(Group group) = nullptr;
  /// Aborts the group and frees it. No other thread may use it any more.
  void (*destroy)(Group group) = nullptr;
};

/// Called by the plug-in when it is loaded.
void set_nccl(const NcclTable* table);
/// Returns the table of the plug-in. Throws Error (kTopology) when no plug-in is loaded.
const NcclTable& nccl();

}  // namespace tycho
