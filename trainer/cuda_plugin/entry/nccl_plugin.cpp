// NCCL's half of libtycho_cuda.so. The only source that includes nccl.h.
#include "trainer/cuda_plugin/entry/nccl_plugin.h"

#include <nccl.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "trainer/base/error.h"

namespace tycho {
namespace {

static_assert(sizeof(ncclUniqueId) == NcclTable::kIdBytes);

/// Throws Error for a failed call. `advice` says what else to do.
void check(ncclResult_t status, const char* what, const char* advice = "") {
  if (status != ncclSuccess)
    fail(ExitCode::kTopology, "[nccl] {}: {} ({}); {}NCCL_DEBUG=INFO prints more", what,
         ncclGetErrorString(status), ncclGetLastError(nullptr), advice);
}

ncclComm_t comm_of(NcclTable::Group group) { return static_cast<ncclComm_t>(group); }
cudaStream_t stream_of(Stream stream) { return static_cast<cudaStream_t>(stream); }

ncclDataType_t type_of(NcclTable::Number number) {
  switch (number) {
    case NcclTable::Number::kFp32: return ncclFloat32;
    case NcclTable::Number::kFp64: return ncclFloat64;
    case NcclTable::Number::kBf16: return ncclBfloat16;
    case NcclTable::Number::kInt32: return ncclInt32;
    case NcclTable::Number::kInt64: return ncclInt64;
    case NcclTable::Number::kByte: return ncclUint8;
  }
  return ncclUint8;
}

void make_id(char* id) {
  ncclUniqueId made;
  check(ncclGetUniqueId(&made), "no id for this run");
  std::memcpy(id, &made, sizeof made);
}

NcclTable::Group join(const char* id, int rank, int num_ranks) {
  ncclUniqueId given;
  std::memcpy(&given, id, sizeof given);
  ncclComm_t comm = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // a rank that never joins must not block the others for ever
  const ncclResult_t status = ncclCommInitRankConfig(&comm, num_ranks, given, rank, &config);
  if (status != ncclInProgress) check(status, "the GPUs of this run cannot reach each other");
  return comm;
}

NcclTable::State state(NcclTable::Group group, std::string& text) {
  ncclResult_t result = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_of(group), &result);
  if (asked != ncclSuccess) result = asked;
  if (result == ncclSuccess) return NcclTable::State::kReady;
  if (result == ncclInProgress) return NcclTable::State::kJoining;
  text = fmt::format("{} ({})", ncclGetErrorString(result), ncclGetLastError(comm_of(group)));
  return result == ncclRemoteError ? NcclTable::State::kPeerLost : NcclTable::State::kFailed;
}

thread_local bool is_together = false;

/// Waits until a collective is enqueued: a non-blocking group may still be busy when the call returns. A call
/// that starts together with others is enqueued with them.
void check_enqueued(NcclTable::Group group, ncclResult_t status, const char* what, const char* advice = "") {
  if (is_together && status == ncclInProgress) return;
  while (status == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    const ncclResult_t asked = ncclCommGetAsyncError(comm_of(group), &status);
    if (asked != ncclSuccess) status = asked;
  }
  check(status, what, advice);
}

void all_reduce(NcclTable::Group group, void* data, int64_t count, NcclTable::Number number, Stream stream) {
  check_enqueued(group,
                 ncclAllReduce(data, data, static_cast<size_t>(count), type_of(number), ncclSum,
                               comm_of(group), stream_of(stream)),
                 "all_reduce");
}

void broadcast(NcclTable::Group group, void* data, int64_t num_bytes, int root, Stream stream) {
  check_enqueued(group,
                 ncclBroadcast(data, data, static_cast<size_t>(num_bytes), ncclUint8, root, comm_of(group),
                               stream_of(stream)),
                 "broadcast");
}

void all_gather(NcclTable::Group group, const void* in, void* out, int64_t num_bytes, Stream stream) {
  check_enqueued(
      group,
      ncclAllGather(in, out, static_cast<size_t>(num_bytes), ncclUint8, comm_of(group), stream_of(stream)),
      "all_gather");
}

void reduce_scatter(NcclTable::Group group, const void* in, void* out, int64_t count,
                    NcclTable::Number number, Stream stream) {
  check_enqueued(group,
                 ncclReduceScatter(in, out, static_cast<size_t>(count), type_of(number), ncclSum,
                                   comm_of(group), stream_of(stream)),
                 "reduce_scatter");
}

void send(NcclTable::Group group, const void* data, int64_t num_bytes, int to, Stream stream) {
  check_enqueued(
      group, ncclSend(data, static_cast<size_t>(num_bytes), ncclUint8, to, comm_of(group), stream_of(stream)),
      "send");
}

void recv(NcclTable::Group group, void* data, int64_t num_bytes, int from, Stream stream) {
  check_enqueued(
      group,
      ncclRecv(data, static_cast<size_t>(num_bytes), ncclUint8, from, comm_of(group), stream_of(stream)),
      "recv");
}

void begin_together() {
  check(ncclGroupStart(), "calls that start together");
  is_together = true;
}

void end_together(NcclTable::Group group) {
  is_together = false;
  check_enqueued(group, ncclGroupEnd(), "calls that start together");
}

void* register_buffer(NcclTable::Group group, void* data, int64_t num_bytes) {
  void* registration = nullptr;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  check_enqueued(group, ncclCommRegister(comm_of(group), data, static_cast<size_t>(num_bytes), &registration),
                 "a buffer could not be registered", "set parallel.register_buffers = false to do without; ");
#endif
  return registration;
}

// Ignores a failure: the group will soon be destroyed, and its registrations with it.
void deregister_buffer(NcclTable::Group group, void* registration) noexcept {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  ncclCommDeregister(comm_of(group), registration);
#endif
}

void abort(NcclTable::Group group) { ncclCommAbort(comm_of(group)); }

constexpr NcclTable kTable = {.make_id = make_id,
                              .join = join,
                              .state = state,
                              .all_reduce = all_reduce,
                              .broadcast = broadcast,
                              .all_gather = all_gather,
                              .reduce_scatter = reduce_scatter,
                              .send = send,
                              .recv = recv,
                              .begin_together = begin_together,
                              .end_together = end_together,
                              .register_buffer = register_buffer,
                              .deregister_buffer = deregister_buffer,
                              .abort = abort};

}  // namespace

const NcclTable* nccl_table() { return &kTable; }

}  // namespace tycho
