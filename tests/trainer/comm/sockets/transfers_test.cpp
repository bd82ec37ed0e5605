// Bytes between ranks over sockets that fill up, close, or stay silent.
#include "trainer/comm/sockets/transfers.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "trainer/rendezvous/socket.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

struct Pair {
  Pair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    near = Socket(ends[0]), far = Socket(ends[1]);
  }
  Socket near, far;
};

std::optional<TransferFailure> nothing_more() { return std::nullopt; }

TEST(Flow, GoesThroughItsSpansAndAroundWhereOneWraps) {
  char first[3], ring[4], last[2];
  Flow flow;
  flow.add(first, 3);
  flow.add(ring, 10, /*wrap=*/4);
  flow.add(last, 2);
  EXPECT_EQ(flow.total(), 15);
  iovec vectors[Flow::kMaxVectors];
  flow.set_limit(3 + 4);
  EXPECT_EQ(flow.vectors(vectors), 2);
  EXPECT_EQ(vectors[1].iov_base, ring);
  flow.advance(3 + 3);
  flow.set_limit(3 + 6);  // bytes 3, 4 and 5 of ten: the last of the ring and its first two
  ASSERT_EQ(flow.vectors(vectors), 2);
  EXPECT_EQ(vectors[0].iov_base, ring + 3);
  EXPECT_EQ(vectors[0].iov_len, 1U);
  EXPECT_EQ(vectors[1].iov_base, ring);
  EXPECT_EQ(vectors[1].iov_len, 2U);
  flow.advance(3);
  EXPECT_FALSE(flow.can_move());
  flow.set_limit(100);
  flow.advance(4);
  ASSERT_EQ(flow.vectors(vectors), 1);
  EXPECT_EQ(vectors[0].iov_base, last);
  flow.advance(2);
  EXPECT_TRUE(flow.is_done());
}

// Each end sends far more than the sockets hold before the other has read anything.
TEST(Transfers, TwoRanksThatSendAtOnceDoNotWaitForEachOther) {
  Pair pair;
  constexpr int64_t kBytes = 20'000'003;
  std::vector<uint8_t> got[2];
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      std::vector<uint8_t> mine(kBytes, static_cast<uint8_t>(r + 1));
      got[r].resize(kBytes);
      std::vector<Transfer> transfers(1);
      transfers[0].fd = (r == 0 ? pair.near : pair.far).fd();
      transfers[0].out.add(mine.data(), kBytes);
      transfers[0].in.add(got[r].data(), kBytes);
      EXPECT_FALSE(run_transfers(transfers, {}, nothing_more).has_value());
    });
  for (std::thread& thread : threads) thread.join();
  for (int r = 0; r < 2; ++r) EXPECT_EQ(got[r], std::vector<uint8_t>(kBytes, static_cast<uint8_t>(2 - r)));
}

TEST(Transfers, AConnectionThatClosesIsLostAndNamed) {
  for (const bool sends : {false, true}) {
    Pair pair;
    pair.far.close();
    char byte = 0;
    std::vector<Transfer> transfers(1);
    transfers[0].fd = pair.near.fd();
    transfers[0].rank = 7;
    (sends ? transfers[0].out : transfers[0].in).add(&byte, 1);
    const auto failure = run_transfers(transfers, {}, nothing_more);
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->kind, TransferFailure::Kind::kLost);
    EXPECT_EQ(failure->what, "its connection has closed");
    EXPECT_EQ(failure->ranks, std::vector<int>{7});
  }
}

TEST(Transfers, WhatWasSentBeforeAConnectionClosedStillArrives) {
  Pair pair;
  char byte = 0;
  ASSERT_EQ(write(pair.far.fd(), "x", 1), 1);
  pair.far.close();
  std::vector<Transfer> transfers(1);
  transfers[0].fd = pair.near.fd();
  transfers[0].in.add(&byte, 1);
  EXPECT_FALSE(run_transfers(transfers, {}, nothing_more).has_value());
  EXPECT_EQ(byte, 'x');
}

TEST(Transfers, RanksWhoseBytesDoNotComeInTimeAreNamed) {
  Pair silent, busy;
  char bytes[2];
  ASSERT_EQ(write(busy.far.fd(), "x", 1), 1);
  std::vector<Transfer> transfers(2);
  transfers[0].fd = silent.near.fd(), transfers[0].rank = 3;
  transfers[1].fd = busy.near.fd(), transfers[1].rank = 4;
  transfers[0].in.add(bytes, 1);
  transfers[1].in.add(bytes + 1, 1);
  const auto failure = run_transfers(transfers, {.timeout_s = 0.05}, nothing_more);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, TransferFailure::Kind::kSilent);
  EXPECT_EQ(failure->ranks, std::vector<int>{3});
  EXPECT_EQ(failure->what, "nothing came for 0.05 s");
}

TEST(Transfers, AWaitEndsWhenItIsStoppedOrTheWorldBreaks) {
  for (const bool stopped : {false, true}) {
    Pair pair;
    const Socket event(eventfd(0, 0));
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const uint64_t one = 1;
      EXPECT_EQ(write(event.fd(), &one, sizeof one), 8);
    });
    char byte = 0;
    std::vector<Transfer> transfers(1);
    transfers[0].fd = pair.near.fd();
    transfers[0].in.add(&byte, 1);
    WaitLimits limits;
    (stopped ? limits.stop_fd : limits.broken_fd) = event.fd();
    const auto failure = run_transfers(transfers, limits, nothing_more);
    later.join();
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->kind, stopped ? TransferFailure::Kind::kStopped : TransferFailure::Kind::kBroken);
  }
}

// Another rank finished, and went, while these bytes were on their way.
TEST(Transfers, BytesThatComeSoonAfterARankHasGoneCount) {
  Pair pair;
  const Socket broken(eventfd(1, 0));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // they are waited for 300 ms
    EXPECT_EQ(write(pair.far.fd(), "x", 1), 1);
  });
  char byte = 0;
  std::vector<Transfer> transfers(1);
  transfers[0].fd = pair.near.fd();
  transfers[0].in.add(&byte, 1);
  EXPECT_FALSE(run_transfers(transfers, {.broken_fd = broken.fd()}, nothing_more).has_value());
  later.join();
}

}  // namespace
}  // namespace tycho
