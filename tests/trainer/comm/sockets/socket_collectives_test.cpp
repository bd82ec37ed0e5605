// Collectives over sockets: sizes around every limit of the algorithms, and ranks that do not do the same.
#include "trainer/comm/sockets/socket_collectives.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "trainer/comm/sockets/background.h"

namespace tycho {
namespace {

using Sockets = std::vector<Socket>;

/// For every rank its sockets with all others.
std::vector<Sockets> connect_all(int num_ranks) {
  std::vector<Sockets> all(static_cast<size_t>(num_ranks));
  for (Sockets& sockets : all) sockets.resize(static_cast<size_t>(num_ranks));
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = a + 1; b < all.size(); ++b) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      all[a][b] = Socket(ends[0]), all[b][a] = Socket(ends[1]);
    }
  return all;
}

/// Runs `body` on every rank at once; what each came to.
std::vector<std::optional<TransferFailure>> on_sockets(
    int num_ranks, const std::function<std::optional<TransferFailure>(SocketCollectives&, int rank)>& body) {
  std::vector<Sockets> sockets = connect_all(num_ranks);
  std::vector<std::optional<TransferFailure>> troubles(sockets.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < num_ranks; ++r)
    threads.emplace_back([&, r] {
      SocketCollectives collectives(r, std::move(sockets[static_cast<size_t>(r)]), {.timeout_s = 20});
      troubles[static_cast<size_t>(r)] = body(collectives, r);
    });
  for (std::thread& thread : threads) thread.join();
  return troubles;
}

void expect_none(const std::vector<std::optional<TransferFailure>>& troubles) {
  for (size_t r = 0; r < troubles.size(); ++r)
    EXPECT_FALSE(troubles[r].has_value()) << "rank " << r << ": " << troubles[r]->what;
}

/// Numbers that round when they are added in another order.
std::vector<float> floats(int rank, int64_t count) {
  std::vector<float> all(static_cast<size_t>(count));
  auto state = static_cast<uint32_t>(rank + 1);
  for (float& x : all) x = static_cast<float>((state = state * 1664525U + 1013904223U) >> 8) * 0x1p-23F - 1;
  return all;
}
std::vector<float> sum_of_all(int num_ranks, int64_t count) {
  std::vector<float> sum = floats(0, count);
  for (int r = 1; r < num_ranks; ++r) {
    const std::vector<float> theirs = floats(r, count);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += theirs[i];
  }
  return sum;
}
bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

// Whole exchanges end at 512 KiB of others' numbers, windows of a piece are 256 KiB, lines 64 bytes.
constexpr int64_t kCounts[] = {1, 16, 17, 1000, 32768, 32769, 65536, 65537, 131072, 131073, 700003};

TEST(SocketCollectives, AllReduceSumsInTheOrderOfRanksAtEverySize) {
  for (const int num_ranks : {1, 2, 3, 5})
    for (const int64_t count : kCounts) {
      const std::vector<float> wanted = sum_of_all(num_ranks, count);
      expect_none(on_sockets(num_ranks, [&](SocketCollectives& collectives, int rank) {
        std::vector<float> x = floats(rank, count);
        auto failure = collectives.all_reduce(SumType::kFp32, x.data(), count);
        EXPECT_TRUE(same_bits(x.data(), wanted.data(), count)) << num_ranks << " ranks, " << count;
        return failure;
      }));
    }
}

TEST(SocketCollectives, ReduceScatterSumsInTheOrderOfRanksAtEverySize) {
  for (const int num_ranks : {1, 2, 3, 5})
    for (const int64_t count : kCounts) {
      const std::vector<float> wanted = sum_of_all(num_ranks, num_ranks * count);
      expect_none(on_sockets(num_ranks, [&](SocketCollectives& collectives, int rank) {
        const std::vector<float> in = floats(rank, num_ranks * count);
        std::vector<float> out(static_cast<size_t>(count));
        auto failure = collectives.reduce_scatter(SumType::kFp32, out.data(), in.data(), count);
        EXPECT_TRUE(same_bits(out.data(), wanted.data() + rank * count, count)) << num_ranks << ", " << count;
        return failure;
      }));
    }
}

TEST(SocketCollectives, BroadcastReachesAllRanksFromAnyOfThem) {
  for (const int num_ranks : {1, 2, 3, 4, 5, 6, 7, 9})
    expect_none(on_sockets(
        num_ranks, [&](SocketCollectives& collectives, int rank) -> std::optional<TransferFailure> {
          for (int root = 0; root < num_ranks; ++root) {
            const std::vector<float> wanted = floats(root, 100'003);
            std::vector<float> x = rank == root ? wanted : std::vector<float>(wanted.size());
            if (auto failure =
                    collectives.broadcast(x.data(), static_cast<int64_t>(x.size() * sizeof(float)), root))
              return failure;
            EXPECT_EQ(x, wanted) << "from " << root << " of " << num_ranks;
          }
          return std::nullopt;
        }));
}

// One rank comes late to every call, so that the others' bytes fill all buffers meanwhile.
TEST(SocketCollectives, ASlowRankHoldsUpTheOthersButNothingIsLost) {
  constexpr int64_t kCount = 3'000'000;
  const std::vector<float> wanted = sum_of_all(3, kCount);
  expect_none(on_sockets(3, [&](SocketCollectives& collectives, int rank) -> std::optional<TransferFailure> {
    for (int round = 0; round < 3; ++round) {
      std::vector<float> x = floats(rank, kCount);
      if (rank == round) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (auto failure = collectives.all_reduce(SumType::kFp32, x.data(), kCount)) return failure;
      EXPECT_TRUE(same_bits(x.data(), wanted.data(), kCount));
    }
    return std::nullopt;
  }));
}

TEST(SocketCollectives, RanksThatCallDifferentVerbsOrSizesLearnBoth) {
  float x[8] = {};
  struct Case {
    std::function<std::optional<TransferFailure>(SocketCollectives&)> first, second;
    const char *in_first, *in_second;
  };
  const auto sum = [](SumType type, int64_t count) {
    return [type, count](SocketCollectives& collectives) {
      std::vector<double> numbers(8);
      return collectives.all_reduce(type, numbers.data(), count);
    };
  };
  const auto barrier = [](SocketCollectives& collectives) { return collectives.barrier(); };
  const std::vector<Case> cases = {
      {sum(SumType::kFp32, 4), sum(SumType::kFp32, 5),
       "rank 0 calls all_reduce of 16 bytes (fp32) (number 0 in this group), but rank 1 calls all_reduce of "
       "20 "
       "bytes (fp32) (number 0)",
       "rank 1 calls all_reduce of 20 bytes (fp32) (number 0 in this group), but rank 0 calls all_reduce of "
       "16 "
       "bytes (fp32) (number 0)"},
      {sum(SumType::kFp32, 4), sum(SumType::kInt32, 4), "(fp32)", "(int32)"},
      {sum(SumType::kFp32, 4), barrier, "but rank 1 calls barrier (number 0)",
       "rank 1 calls barrier (number 0 in this group), but rank 0 calls all_reduce"},
      {[&](SocketCollectives& collectives) {
         return collectives.all_gather(std::vector<float>(8).data(), x, 16);
       },
       [&](SocketCollectives& collectives) {
         std::vector<float> out(4);
         return collectives.reduce_scatter(SumType::kFp32, out.data(), std::vector<float>(8).data(), 4);
       },
       "rank 0 calls all_gather of 16 bytes", "rank 1 calls reduce_scatter of 16 bytes (fp32)"}};
  for (const Case& one : cases) {
    const auto troubles = on_sockets(2, [&](SocketCollectives& collectives, int rank) {
      return rank == 0 ? one.first(collectives) : one.second(collectives);
    });
    for (const auto& failure : troubles) {
      ASSERT_TRUE(failure.has_value());
      EXPECT_EQ(failure->kind, TransferFailure::Kind::kMismatch);
    }
    EXPECT_NE(troubles[0]->what.find(one.in_first), std::string::npos) << troubles[0]->what;
    EXPECT_NE(troubles[1]->what.find(one.in_second), std::string::npos) << troubles[1]->what;
  }
}

TEST(SocketCollectives, ARankThatIsOneCallAheadIsNamed) {
  const auto troubles =
      on_sockets(2, [](SocketCollectives& collectives, int rank) -> std::optional<TransferFailure> {
        char x[100] = {};
        if (auto failure = collectives.broadcast(x, 100, 0)) return failure;
        if (rank == 0) return collectives.barrier();
        return collectives.broadcast(x, 100, 0);
      });
  ASSERT_TRUE(troubles[1].has_value());
  EXPECT_EQ(
      troubles[1]->what,
      "rank 1 calls broadcast of 100 bytes from rank 0 (number 1 in this group), but rank 0 calls barrier "
      "(number 1)");
}

TEST(SocketCollectives, GarbageIsAnErrorAndSoIsEveryCallAfterIt) {
  std::vector<Sockets> sockets = connect_all(2);
  SocketCollectives collectives(0, std::move(sockets[0]), {.timeout_s = 20});
  const std::string garbage(1000, '\xff');
  ASSERT_EQ(write(sockets[1][0].fd(), garbage.data(), garbage.size()), 1000);
  float x[4] = {};
  for (int i = 0; i < 2; ++i) {
    const auto failure = collectives.all_reduce(SumType::kFp32, x, 4);
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->what, "rank 1 sent garbage");
    EXPECT_EQ(failure->kind, TransferFailure::Kind::kMismatch);
  }
}

TEST(SocketCollectives, AHeaderInPiecesIsReadWhole) {
  std::vector<Sockets> sockets = connect_all(2);
  const int fd = sockets[1][0].fd();
  std::thread slow([fd] {
    const Announcement call = {.magic = 0x6f686379, .op = CollectiveOp::kBarrier};
    for (size_t i = 0; i < sizeof call; ++i) {
      EXPECT_EQ(write(fd, reinterpret_cast<const char*>(&call) + i, 1), 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  SocketCollectives collectives(0, std::move(sockets[0]), {.timeout_s = 20});
  EXPECT_FALSE(collectives.barrier().has_value());
  slow.join();
}

TEST(SocketCollectives, MessagesOfDifferentSizesAreAnErrorOfTheReceiver) {
  std::vector<Sockets> sockets = connect_all(2);
  MessageWire sender(0, 1, std::move(sockets[0][1]), {}), receiver(1, 0, std::move(sockets[1][0]), {});
  char x[20] = "one", got[20] = {};
  EXPECT_FALSE(sender.send(x, 20).has_value());
  EXPECT_FALSE(receiver.recv(got, 20).has_value());
  EXPECT_STREQ(got, "one");
  EXPECT_FALSE(sender.send(x, 10).has_value());
  const auto failure = receiver.recv(got, 20);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->what, "rank 0 sends a message of 10 bytes, but rank 1 receives one of 20 bytes");
}

TEST(Background, CallsRunInTheirOrderWhileTheCallerGoesOn) {
  Background background;
  std::mutex gate;
  gate.lock();
  std::vector<int> order;
  const auto first = background.start([&]() -> std::optional<TransferFailure> {
    const std::lock_guard wait(gate);  // until the caller has started the second: it was not kept waiting
    order.push_back(1);
    return std::nullopt;
  });
  const auto second = background.start([&]() -> std::optional<TransferFailure> {
    order.push_back(2);
    return TransferFailure{TransferFailure::Kind::kLost, "gone", {3}};
  });
  gate.unlock();
  EXPECT_EQ(background.wait(*second)->what, "gone");
  EXPECT_FALSE(background.wait(*first).has_value());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  background.wait_for_all();
}

TEST(Background, AGroupThatEndsStopsWhatWaitsForOthers) {
  for (const bool has_begun : {false, true}) {
    std::vector<Sockets> sockets = connect_all(2);
    Background background;
    SocketCollectives collectives(0, std::move(sockets[0]), {});
    const auto call = background.start([&] { return collectives.barrier(); });
    if (has_begun) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    collectives.stop();
    ASSERT_TRUE(background.wait(*call).has_value());
  }
}

}  // namespace
}  // namespace tycho
