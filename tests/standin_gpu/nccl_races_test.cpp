// A group that hangs and is aborted while another thread uses it: under the thread sanitizer, with an NCCL
// that frees a communicator when it is aborted, as NCCL does.
#include <gtest/gtest.h>
#include <nccl.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "trainer/cuda_plugin/entry/nccl_plugin.h"

namespace {

std::atomic<int> num_calls = 0, num_looks = 0, num_freed = 0;
std::atomic<bool> hangs = false;

/// Calls read `canary`, and an abort writes and frees it: the sanitizer reports a pair that nothing orders.
struct Communicator {
  int canary = 1;
};
Communicator* of(ncclComm_t comm) { return reinterpret_cast<Communicator*>(comm); }

ncclResult_t used(ncclComm_t comm, std::atomic<int>& count) {
  EXPECT_EQ(of(comm)->canary, 1);
  ++count;
  return hangs ? ncclInProgress : ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId*) { return ncclSuccess; }
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int, ncclUniqueId, int, ncclConfig_t* config) {
  EXPECT_EQ(config->blocking, 0);
  *comm = reinterpret_cast<ncclComm_t>(new Communicator);
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  *result = used(comm, num_looks);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  of(comm)->canary = 0;
  delete of(comm);
  ++num_freed;
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(const ncclComm_t comm, void*, size_t, void**) { return used(comm, num_calls); }
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) { return used(comm, num_calls); }
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t) {
  return used(comm, num_calls);
}
ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t comm, cudaStream_t) {
  return used(comm, num_calls);
}
ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t comm, cudaStream_t) {
  return used(comm, num_calls);
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t) {
  return used(comm, num_calls);
}
ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t comm, cudaStream_t) {
  return used(comm, num_calls);
}
ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t comm, cudaStream_t) {
  return used(comm, num_calls);
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return hangs ? ncclInProgress : ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t) { return "an error"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }

}  // extern "C"

namespace tycho {
namespace {

class NcclRaces : public testing::Test {
 protected:
  void SetUp() override {
    hangs = false;
    num_calls = num_looks = num_freed = 0;
    const char id[NcclTable::kIdBytes] = {};
    group_ = table_.join(id, 0, 2);
  }
  void TearDown() override { table_.destroy(group_); }

  /// Runs `use` on another thread, on a group that hangs, and aborts it once NCCL was asked some times.
  void abort_while(const std::function<void()>& use) {
    hangs = true;
    std::thread user(use);
    while (num_looks < 5) std::this_thread::yield();
    table_.abort(group_);
    user.join();
    EXPECT_EQ(num_freed, 1);
  }

  const NcclTable& table_ = *nccl_table();
  NcclTable::Group group_ = nullptr;
  char data_[8] = {};
};

TEST_F(NcclRaces, AnAbortEndsACallThatHangs) {
  abort_while([&] { table_.all_reduce(group_, data_, 2, NcclTable::Number::kFp32, nullptr); });
}

TEST_F(NcclRaces, AnAbortEndsCallsThatHangTogether) {
  abort_while([&] {
    table_.begin_together(group_);
    table_.send(group_, data_, 8, 1, nullptr);
    table_.recv(group_, data_, 8, 1, nullptr);
    table_.end_together(group_);
  });
  EXPECT_EQ(num_calls, 2);
}

TEST_F(NcclRaces, AWatchdogAsksForTheStateDuringACall) {
  abort_while([&] {
    std::thread watchdog([&] {
      std::string text;
      while (num_freed == 0) EXPECT_NE(table_.state(group_, text), NcclTable::State::kFailed);
    });
    table_.broadcast(group_, data_, 8, 0, nullptr);
    watchdog.join();
  });
}

TEST_F(NcclRaces, AnAbortWaitsForNoThreadBetweenItsCalls) {
  std::atomic<bool> ends = false;
  std::thread user([&] {
    while (!ends) table_.all_gather(group_, data_, data_, 8, nullptr);
  });
  while (num_calls < 100) std::this_thread::yield();
  table_.abort(group_);
  ends = true;
  user.join();
}

TEST_F(NcclRaces, AnAbortedGroupIgnoresCalls) {
  table_.abort(group_);
  table_.abort(group_);
  table_.all_reduce(group_, data_, 2, NcclTable::Number::kFp32, nullptr);
  table_.begin_together(group_);
  table_.send(group_, data_, 8, 1, nullptr);
  table_.end_together(group_);
  EXPECT_EQ(table_.register_buffer(group_, data_, 8), nullptr);
  table_.deregister_buffer(group_, data_);
  EXPECT_EQ(num_calls, 0);
  EXPECT_EQ(num_freed, 1);
}

}  // namespace
}  // namespace tycho
