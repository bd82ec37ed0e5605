// NCCL's half of libtycho_cuda.so. The only source that includes nccl.h.
#include "trainer/cuda_plugin/entry/nccl_plugin.h"

#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

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

/// A group. `mutex` is not held over a call or a wait: a watchdog must be able to abort a group that hangs.
struct Member {
  std::mutex mutex;
  std::condition_variable call_returned;
  ncclComm_t comm = nullptr;  // null once it was aborted, which frees it
  int num_calls = 0;          // that have not returned yet
};
Member& member_of(NcclTable::Group group) { return *static_cast<Member*>(group); }

/// Keeps the group's communicator while a call of NCCL uses it.
class Call {
 public:
  explicit Call(Member& member) : member_(member) {
    const std::lock_guard lock(member_.mutex);
    comm_ = member_.comm;
    ++member_.num_calls;
  }
  ~Call() {
    const std::lock_guard lock(member_.mutex);
    if (--member_.num_calls == 0) member_.call_returned.notify_all();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// Returns null for an aborted group.
  ncclComm_t comm() const { return comm_; }

 private:
  Member& member_;
  ncclComm_t comm_ = nullptr;
};

cudaStream_t stream_of(Stream stream) { return static_cast<cudaStream_t>(stream); }

int version() {
  int number = 0;
  check(ncclGetVersion(&number), "no version");
  return number;
}

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
  auto member = std::make_unique<Member>();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // a rank that never joins must not block the others for ever
  const ncclResult_t status = ncclCommInitRankConfig(&member->comm, num_ranks, given, rank, &config);
  if (status != ncclInProgress) check(status, "the GPUs of this run cannot reach each other");
  return member.release();
}

/// Returns what NCCL says of the group now; ncclSuccess for an aborted one.
ncclResult_t look(Member& member) {
  const std::lock_guard lock(member.mutex);
  if (member.comm == nullptr) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(member.comm, &result);
  return asked != ncclSuccess ? asked : result;
}

NcclTable::State state(NcclTable::Group group, std::string& text) {
  const ncclResult_t result = look(member_of(group));
  if (result == ncclSuccess) return NcclTable::State::kReady;
  if (result == ncclInProgress) return NcclTable::State::kJoining;
  text = fmt::format("{} ({})", ncclGetErrorString(result), ncclGetLastError(nullptr));
  return result == ncclRemoteError ? NcclTable::State::kPeerLost : NcclTable::State::kFailed;
}

/// Waits while a call is in progress: of a non-blocking group it returns before it is enqueued. Most are
/// after a few microseconds, and a sleep takes at least 50.
ncclResult_t enqueued(Member& member, ncclResult_t status) {
  using Clock = std::chrono::steady_clock;
  const auto spins_until = Clock::now() + std::chrono::microseconds(50);
  while (status == ncclInProgress) {
    if (Clock::now() > spins_until) std::this_thread::sleep_for(std::chrono::microseconds(20));
    status = look(member);
  }
  return status;
}

/// The calls that start together on this thread count as one until the last has started.
thread_local std::unique_ptr<Call> together;

/// Makes call(comm) unless the group was aborted, and waits until it is enqueued. A call that starts together
/// with others is enqueued with them. Throws Error with `what` and `advice`.
template <class Body>
void enqueue(NcclTable::Group group, const char* what, const Body& call, const char* advice = "") {
  ncclResult_t status = ncclSuccess;
  {
    const Call in_flight(member_of(group));
    if (in_flight.comm() == nullptr) return;
    status = call(in_flight.comm());
  }
  if (together && status == ncclInProgress) return;
  check(together ? status : enqueued(member_of(group), status), what, advice);
}

void all_reduce(NcclTable::Group group, void* data, int64_t count, NcclTable::Number number, Stream stream) {
  enqueue(group, "all_reduce", [&](ncclComm_t comm) {
    return ncclAllReduce(data, data, static_cast<size_t>(count), type_of(number), ncclSum, comm,
                         stream_of(stream));
  });
}

void broadcast(NcclTable::Group group, void* data, int64_t num_bytes, int root, Stream stream) {
  enqueue(group, "broadcast", [&](ncclComm_t comm) {
    return ncclBroadcast(data, data, static_cast<size_t>(num_bytes), ncclUint8, root, comm,
                         stream_of(stream));
  });
}

void all_gather(NcclTable::Group group, const void* in, void* out, int64_t num_bytes, Stream stream) {
  enqueue(group, "all_gather", [&](ncclComm_t comm) {
    return ncclAllGather(in, out, static_cast<size_t>(num_bytes), ncclUint8, comm, stream_of(stream));
  });
}

void reduce_scatter(NcclTable::Group group, const void* in, void* out, int64_t count,
                    NcclTable::Number number, Stream stream) {
  enqueue(group, "reduce_scatter", [&](ncclComm_t comm) {
    return ncclReduceScatter(in, out, static_cast<size_t>(count), type_of(number), ncclSum, comm,
                             stream_of(stream));
  });
}

void send(NcclTable::Group group, const void* data, int64_t num_bytes, int to, Stream stream) {
  enqueue(group, "send", [&](ncclComm_t comm) {
    return ncclSend(data, static_cast<size_t>(num_bytes), ncclUint8, to, comm, stream_of(stream));
  });
}

void recv(NcclTable::Group group, void* data, int64_t num_bytes, int from, Stream stream) {
  enqueue(group, "recv", [&](ncclComm_t comm) {
    return ncclRecv(data, static_cast<size_t>(num_bytes), ncclUint8, from, comm, stream_of(stream));
  });
}

void begin_together(NcclTable::Group group) {
  together = std::make_unique<Call>(member_of(group));
  const ncclResult_t status = ncclGroupStart();
  if (status != ncclSuccess) together.reset();
  check(status, "calls that start together");
}

void end_together(NcclTable::Group group) {
  const ncclResult_t status = ncclGroupEnd();
  together.reset();
  check(enqueued(member_of(group), status), "calls that start together");
}

void* register_buffer(NcclTable::Group group, void* data, int64_t num_bytes) {
  void* registration = nullptr;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  enqueue(
      group, "a buffer could not be registered",
      [&](ncclComm_t comm) {
        return ncclCommRegister(comm, data, static_cast<size_t>(num_bytes), &registration);
      },
      "set parallel.register_buffers = false to do without; ");
#endif
  return registration;
}

// Ignores a failure: the group will soon be destroyed, and its registrations with it.
void deregister_buffer(NcclTable::Group group, void* registration) noexcept {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  const Call in_flight(member_of(group));
  if (in_flight.comm() != nullptr) ncclCommDeregister(in_flight.comm(), registration);
#endif
}

/// Calls return at once, so that one which is still there after this time hangs: only the abort ends it.
constexpr auto kLongestCall = std::chrono::seconds(1);

// Not under the lock: NCCL may wait here for the driver.
void abort(NcclTable::Group group) {
  Member& member = member_of(group);
  ncclComm_t comm = nullptr;
  {
    std::unique_lock lock(member.mutex);
    comm = std::exchange(member.comm, nullptr);
    member.call_returned.wait_for(lock, kLongestCall, [&] { return member.num_calls == 0; });
  }
  if (comm != nullptr) ncclCommAbort(comm);
}

void destroy(NcclTable::Group group) {
  abort(group);
  delete &member_of(group);
}

constexpr NcclTable kTable = {.version = version,
                              .make_id = make_id,
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
                              .abort = abort,
                              .destroy = destroy};

}  // namespace

const NcclTable* nccl_table() { return &kTable; }

}  // namespace tycho
