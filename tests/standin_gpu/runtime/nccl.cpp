// NCCL between processes of one machine, over shared memory. As NCCL's own it knows nothing of peers that
// die: a collective waits for them until its communicator is aborted, and then leaves garbage behind.
#include <fcntl.h>
#include <nccl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/standin_gpu/runtime/checker.h"
#include "tests/standin_gpu/runtime/nccl_sums.h"
#include "tests/standin_gpu/runtime/record.h"
#include "tests/standin_gpu/runtime/state.h"

namespace {

constexpr int kMostRanks = 8;
using standin::add, standin::bytes_of, standin::kSlotBytes;
constexpr size_t kMessageBytes = 1 << 16;

/// From one rank to another: a part of a message lies in it while `sent` is ahead of `taken`.
struct Channel {
  std::atomic<long> sent, taken;
  char bytes[kMessageBytes];
};

struct Shared {
  std::atomic<int> joined;
  std::atomic<long> arrived[kMostRanks];  // how many meetings each rank has come to
  alignas(64) char slots[kMostRanks][kSlotBytes];
  Channel channels[kMostRanks][kMostRanks];  // [from][to]
};

struct Communicator {
  int rank = 0, num_ranks = 1, device = 0;
  Shared* shared = nullptr;
  long meetings = 0;
  std::map<const char*, size_t> registered;  // where it begins, and bytes
  std::atomic<bool> ended = false;
  std::atomic<int> state = ncclInProgress;  // what ncclCommGetAsyncError tells
};

/// Counts a tensor of a collective that lies in registered memory.
void count_registered(const Communicator& own, const void* pointer, size_t bytes) {
  const auto* begin = static_cast<const char*>(pointer);
  const auto behind = own.registered.upper_bound(begin);
  if (behind == own.registered.begin()) return;
  const auto& [from, size] = *std::prev(behind);
  if (begin + bytes <= from + size) standin::called("registered tensor");
}

Communicator* of(ncclComm_t comm) { return reinterpret_cast<Communicator*>(comm); }

/// Waits for all ranks; false when this communicator was aborted meanwhile.
bool meet(Communicator& own) {
  const long mine = ++own.meetings;
  own.shared->arrived[own.rank] = mine;
  for (int r = 0; r < own.num_ranks; ++r)
    while (own.shared->arrived[r] < mine) {
      if (own.ended) return false;
      usleep(20);
    }
  return !own.ended;
}

/// A number of the asked-for kind, or -1: a failure on demand, which a collective meets on the GPU.
bool fails_on_gpu(Communicator& own) {
  const int code = standin::called("nccl async error");
  if (code == 0) return false;
  standin::last_error(/*clear=*/true);
  own.state = code;
  while (!own.ended) usleep(1000);
  return true;
}

/// What a call is refused for, or ncclSuccess.
ncclResult_t refused(const char* name, Communicator& own, std::initializer_list<const void*> pointers,
                     cudaStream_t stream) {
  if (standin::called(name) != cudaSuccess) return ncclUnhandledCudaError;
  if (standin_check_launch(name, stream) != cudaSuccess || standin::current_device() != own.device)
    return ncclInvalidArgument;
  for (const void* pointer : pointers)
    if (standin_check_pointer(name, pointer) != cudaSuccess) return ncclInvalidArgument;
  return own.ended ? ncclInvalidUsage : ncclSuccess;
}

/// Runs each(where a part begins, its elements) over parts that fit a slot; garbage in `to` when this
/// communicator was aborted meanwhile.
template <class Each>
void in_parts(Communicator& own, void* to, size_t to_bytes, size_t count, size_t width, const Each& each) {
  for (size_t begin = 0; begin < count; begin += kSlotBytes / width) {
    const size_t part = std::min(kSlotBytes / width, count - begin);
    if (each(begin, part) && meet(own)) continue;
    std::memset(to, 0xff, to_bytes);
    return;
  }
}

/// Waits until `is_so` or this communicator was aborted.
template <class IsSo>
bool wait_until(const Communicator& own, const IsSo& is_so) {
  while (!is_so()) {
    if (own.ended) return false;
    usleep(20);
  }
  return true;
}

/// What this thread has called since ncclGroupStart, and does at ncclGroupEnd.
struct Later {
  Communicator* own;
  int way;  // of a message: its peer, and kMostRanks more for one that comes; -1: a collective
  std::function<void()> run;
  std::function<void()> tell;  // the checker
};
thread_local int group_depth = 0;
thread_local std::vector<Later> later;

size_t sum_of(const std::vector<standin::Bytes>& parts) {
  size_t sum = 0;
  for (const standin::Bytes& part : parts) sum += part.end - part.begin;
  return sum;
}

/// Puts a call on its stream at once, or where its group ends. In record mode it is written down, with the
/// size of its group: the other ranks need not exist.
ncclResult_t now_or_later(Communicator& own, int way, const char* name, cudaStream_t stream,
                          standin::Uses uses, std::function<void()> run) {
  if (standin_records()) {
    standin_record((std::string(name) + " of " + std::to_string(own.num_ranks)).c_str(),
                   static_cast<double>(sum_of(uses.reads)), static_cast<double>(sum_of(uses.writes)), 0);
    return ncclSuccess;
  }
  const auto tell = [=, uses = std::move(uses)] { standin::enqueued(name, stream, uses); };
  if (group_depth > 0) {
    later.push_back({&own, way, std::move(run), tell});
  } else {
    tell();
    run();
  }
  return ncclSuccess;
}

/// Collectives in their order; messages of each way in theirs, beside those of all other ways.
void run_together(const std::vector<Later>& calls) {
  std::map<std::pair<Communicator*, int>, std::vector<const Later*>> ways;
  for (const Later& call : calls) call.tell();
  for (const Later& call : calls)
    if (call.way >= 0) ways[{call.own, call.way}].push_back(&call);
  std::vector<std::thread> threads;
  for (const auto& way : ways)
    threads.emplace_back([&way] {
      for (const Later* call : way.second) call->run();
    });
  for (const Later& call : calls)
    if (call.way < 0) call.run();
  for (std::thread& thread : threads) thread.join();
}

void wait_for_all(Communicator* own) {
  while (own->shared->joined < own->num_ranks && !own->ended) usleep(200);
  int expected = ncclInProgress;
  own->state.compare_exchange_strong(expected, ncclSuccess);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  uint64_t number = 0;
  const int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (random < 0 || read(random, &number, sizeof number) != sizeof number) return ncclSystemError;
  close(random);
  std::snprintf(id->internal, sizeof id->internal, "/tycho-standin-%016llx",
                static_cast<unsigned long long>(number));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int num_ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (standin::called("ncclCommInitRank") != cudaSuccess) return ncclUnhandledCudaError;
  if (const char* algorithms = std::getenv("NCCL_ALGO"))
    standin::called((std::string("NCCL_ALGO=") + algorithms).c_str());
  if (standin_records()) {
    auto* alone = new Communicator;
    alone->rank = rank, alone->num_ranks = num_ranks, alone->device = standin::current_device();
    alone->state = ncclSuccess;
    *comm = reinterpret_cast<ncclComm_t>(alone);
    return ncclSuccess;
  }
  if (num_ranks > kMostRanks || rank >= num_ranks) return ncclInvalidArgument;
  const int file = shm_open(id.internal, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return ncclSystemError;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return ncclSystemError;
  auto* own = new Communicator;
  own->rank = rank, own->num_ranks = num_ranks, own->device = standin::current_device();
  own->shared = static_cast<Shared*>(memory);
  *comm = reinterpret_cast<ncclComm_t>(own);
  if (++own->shared->joined == num_ranks) shm_unlink(id.internal);
  if (config != nullptr && config->blocking == 0) {
    std::thread(wait_for_all, own).detach();
    return ncclInProgress;
  }
  wait_for_all(own);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int num_ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, num_ranks, id, rank, nullptr);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = static_cast<ncclResult_t>(of(comm)->state.load());
  return ncclSuccess;
}

// Memory of another device, or more than was allocated there, is an error.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t size, void** handle) {
  Communicator& own = *of(comm);
  if (standin::called("ncclCommRegister") != cudaSuccess) return ncclUnhandledCudaError;
  const standin::Owner owner = standin::owner_of(buffer);
  if (owner.place != standin::Place::kDevice || owner.device != own.device || owner.bytes_behind < size)
    return ncclInvalidArgument;
  own.registered[static_cast<const char*>(buffer)] = size;
  *handle = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  if (standin::called("ncclCommDeregister") != cudaSuccess) return ncclUnhandledCudaError;
  return of(comm)->registered.erase(static_cast<const char*>(handle)) == 1 ? ncclSuccess
                                                                           : ncclInvalidArgument;
}

// The communicator stays: another thread may be in a collective.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  standin::called("ncclCommAbort");
  of(comm)->ended = true;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return ncclCommAbort(comm); }
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  Communicator& own = *of(comm);
  if (operation != ncclSum || from != to) return ncclInvalidArgument;
  if (const ncclResult_t no = refused("ncclAllReduce", own, {to}, stream); no != ncclSuccess) return no;
  if (fails_on_gpu(own)) return ncclSuccess;
  const size_t width = bytes_of(type);
  count_registered(own, to, count * width);
  return now_or_later(own, -1, "ncclAllReduce", stream,
                      standin::Uses().read(to, count * width).write(to, count * width), [=, &own] {
                        in_parts(own, to, count * width, count, width, [&](size_t begin, size_t elements) {
                          char* part = static_cast<char*>(to) + begin * width;
                          std::memcpy(own.shared->slots[own.rank], part, elements * width);
                          if (!meet(own)) return false;
                          add(own.shared->slots, own.num_ranks, part, elements, type);
                          return true;
                        });
                      });
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  Communicator& own = *of(comm);
  if (from != to) return ncclInvalidArgument;
  if (const ncclResult_t no = refused("ncclBroadcast", own, {to}, stream); no != ncclSuccess) return no;
  if (fails_on_gpu(own)) return ncclSuccess;
  const size_t width = bytes_of(type);
  standin::Uses uses;
  own.rank == root ? uses.read(to, count * width) : uses.write(to, count * width);
  return now_or_later(own, -1, "ncclBroadcast", stream, uses, [=, &own] {
    in_parts(own, to, count * width, count, width, [&](size_t begin, size_t elements) {
      char* part = static_cast<char*>(to) + begin * width;
      if (own.rank == root) std::memcpy(own.shared->slots[root], part, elements * width);
      if (!meet(own)) return false;
      std::memcpy(part, own.shared->slots[root], elements * width);
      return true;
    });
  });
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  Communicator& own = *of(comm);
  if (const ncclResult_t no = refused("ncclAllGather", own, {from, to}, stream); no != ncclSuccess) return no;
  if (fails_on_gpu(own)) return ncclSuccess;
  const size_t width = bytes_of(type), piece = count * width;
  const size_t whole = piece * static_cast<size_t>(own.num_ranks);
  count_registered(own, from, piece), count_registered(own, to, whole);
  const auto uses = standin::Uses().read(from, piece).write(to, whole);
  return now_or_later(own, -1, "ncclAllGather", stream, uses, [=, &own] {
    in_parts(own, to, whole, count, width, [&](size_t begin, size_t elements) {
      std::memcpy(own.shared->slots[own.rank], static_cast<const char*>(from) + begin * width,
                  elements * width);
      if (!meet(own)) return false;
      for (int r = 0; r < own.num_ranks; ++r)
        std::memcpy(static_cast<char*>(to) + static_cast<size_t>(r) * piece + begin * width,
                    own.shared->slots[r], elements * width);
      return true;
    });
  });
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  Communicator& own = *of(comm);
  if (operation != ncclSum) return ncclInvalidArgument;
  if (const ncclResult_t no = refused("ncclReduceScatter", own, {from, to}, stream); no != ncclSuccess)
    return no;
  if (fails_on_gpu(own)) return ncclSuccess;
  const size_t width = bytes_of(type), piece = count * width;
  const size_t whole = piece * static_cast<size_t>(own.num_ranks);
  count_registered(own, from, whole), count_registered(own, to, piece);
  const auto uses = standin::Uses().read(from, whole).write(to, piece);
  return now_or_later(own, -1, "ncclReduceScatter", stream, uses, [=, &own] {
    for (int r = 0; r < own.num_ranks; ++r)  // the pieces one after the other
      in_parts(own, to, piece, count, width, [&](size_t begin, size_t elements) {
        const size_t at = static_cast<size_t>(r) * piece + begin * width;
        std::memcpy(own.shared->slots[own.rank], static_cast<const char*>(from) + at, elements * width);
        if (!meet(own)) return false;
        if (r == own.rank)
          add(own.shared->slots, own.num_ranks, static_cast<char*>(to) + begin * width, elements, type);
        return true;
      });
  });
}

// As NCCL's own it waits for the receiver.
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  Communicator& own = *of(comm);
  if (peer < 0 || peer >= own.num_ranks || peer == own.rank) return ncclInvalidArgument;
  if (const ncclResult_t no = refused("ncclSend", own, {from}, stream); no != ncclSuccess) return no;
  const size_t bytes = count * bytes_of(type);
  return now_or_later(own, peer, "ncclSend", stream, standin::Uses().read(from, bytes), [=, &own] {
    Channel& channel = own.shared->channels[own.rank][peer];
    for (size_t begin = 0; begin < bytes; begin += kMessageBytes) {
      std::memcpy(channel.bytes, static_cast<const char*>(from) + begin,
                  std::min(kMessageBytes, bytes - begin));
      ++channel.sent;
      if (!wait_until(own, [&] { return channel.taken == channel.sent; })) break;
    }
  });
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  Communicator& own = *of(comm);
  if (peer < 0 || peer >= own.num_ranks || peer == own.rank) return ncclInvalidArgument;
  if (const ncclResult_t no = refused("ncclRecv", own, {to}, stream); no != ncclSuccess) return no;
  const size_t bytes = count * bytes_of(type);
  const auto uses = standin::Uses().write(to, bytes);
  return now_or_later(own, kMostRanks + peer, "ncclRecv", stream, uses, [=, &own] {
    Channel& channel = own.shared->channels[peer][own.rank];
    for (size_t begin = 0; begin < bytes; begin += kMessageBytes) {
      if (!wait_until(own, [&] { return channel.sent > channel.taken; })) {
        std::memset(to, 0xff, bytes);
        break;
      }
      std::memcpy(static_cast<char*>(to) + begin, channel.bytes, std::min(kMessageBytes, bytes - begin));
      ++channel.taken;
    }
  });
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth == 0) run_together(std::exchange(later, {}));
  return ncclSuccess;
}

}  // extern "C"
