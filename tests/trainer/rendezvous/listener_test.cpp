// A listener and clients that do not know the token.
#include "trainer/rendezvous/listener.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <vector>

#include "tests/trainer/rendezvous/intruders.h"
#include "trainer/rendezvous/dial.h"

namespace tycho {
namespace {

using namespace std::chrono_literals;

constexpr const char* kListenerToken = "0123456789abcdef0123456789abcdef";
const RankClaim kDataClaim{.rank = 1, .num_ranks = 2, .purpose = "data"};

/// A listener that welcomes whoever proves itself.
struct TestListener {
  explicit TestListener(ListenerLimits limits = {})
      : listener(listen_at(numeric_endpoint("127.0.0.1", 0)), kListenerToken,
                 {[](const RankClaim&) {
                    return HandshakeVerdict{Answer::kWelcome, ""};
                  },
                  [this](Socket socket, const RankClaim&) {
                    const std::lock_guard lock(mutex);
                    callers.push_back(std::move(socket));
                  }},
                 limits) {}
  DialResult call(const std::string& token = kListenerToken) {
    return dial(listener.address(), token, kDataClaim, 5s, [] { return false; });
  }
  size_t num_callers() {
    const std::lock_guard lock(mutex);
    return callers.size();
  }
  std::mutex mutex;
  std::vector<Socket> callers;
  Listener listener;  // last: it calls what stands above
};

int num_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

template <class Condition>
bool becomes_true(const Condition& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(Listener, LetsInWhoKnowsTheToken) {
  TestListener rank;
  const DialResult result = rank.call();
  EXPECT_EQ(result.how, DialResult::How::kOpen) << result.why;
  EXPECT_TRUE(becomes_true([&] { return rank.num_callers() == 1; }));
  EXPECT_EQ(rank.listener.num_turned_away(), 0);
}

TEST(Listener, NothingOfWhatFollowsTheHandshakeIsLost) {
  TestListener rank;
  const DialResult result = rank.call();
  ASSERT_EQ(send(result.socket.fd(), "hello", 5, 0), 5);
  ASSERT_TRUE(becomes_true([&] { return rank.num_callers() == 1; }));
  char bytes[5];
  EXPECT_TRUE(
      becomes_true([&] { return recv(rank.callers[0].fd(), bytes, 5, MSG_PEEK | MSG_DONTWAIT) == 5; }));
}

TEST(Listener, AWrongTokenIsTurnedAwayWithoutAWordAndCounted) {
  TestListener rank;
  const DialResult result = rank.call("another token, and a long one");
  EXPECT_EQ(result.how, DialResult::How::kTryAgain);
  EXPECT_NE(result.why.find("it hung up during the handshake"), std::string::npos) << result.why;
  EXPECT_TRUE(becomes_true([&] { return rank.listener.num_turned_away() == 1; }));
  EXPECT_EQ(rank.num_callers(), 0U);
}

TEST(Listener, AVerdictReachesTheCaller) {
  Listener listener(
      listen_at(numeric_endpoint("127.0.0.1", 0)), kListenerToken,
      {[](const RankClaim& claim) {
         return HandshakeVerdict{claim.rank == 1 ? Answer::kRefused : Answer::kLater, "why not"};
       },
       [](Socket, const RankClaim&) { FAIL() << "nobody is welcome"; }});
  RankClaim claim = kDataClaim;
  for (const auto how : {DialResult::How::kRefused, DialResult::How::kTryAgain}) {
    const DialResult result = dial(listener.address(), kListenerToken, claim, 5s, [] { return false; });
    EXPECT_EQ(result.how, how);
    EXPECT_EQ(result.why, "why not");
    claim.rank = 2;
  }
  EXPECT_EQ(listener.num_turned_away(), 0);  // they know the token
}

TEST(Listener, ClientsThatDoNotProveThemselvesAreClosedInTime) {
  TestListener rank({.handshake = 200ms});
  std::vector<Socket> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(connect_to(rank.listener.address()));
  EXPECT_TRUE(becomes_true([&] { return rank.listener.num_turned_away() == 10; }));
  for (const Socket& one : silent) {
    char byte = 0;
    EXPECT_LE(recv(one.fd(), &byte, 1, 0), 0);
  }
}

TEST(Listener, OneWhoSendsByteByByteGetsNoMoreTime) {
  TestListener rank({.handshake = 300ms});
  const Socket slow = connect_to(rank.listener.address());
  const std::string hello = HandshakeClient(kListenerToken, kDataClaim).hello();
  bool closed = false;
  for (size_t i = 0; i < hello.size() && !closed; ++i) {
    closed = send(slow.fd(), &hello[i], 1, MSG_NOSIGNAL) != 1;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_TRUE(closed);
}

TEST(Listener, ARankConnectsThoughSilentClientsTakeEveryPlace) {
  TestListener rank({.handshake = std::chrono::minutes(10)});
  std::vector<Socket> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(connect_to(rank.listener.address()));
  EXPECT_EQ(rank.call().how, DialResult::How::kOpen);
  EXPECT_TRUE(becomes_true([&] { return rank.num_callers() == 1; }));
  EXPECT_GE(rank.listener.num_turned_away(), 300 - 64);
}

TEST(Listener, ARankConnectsThoughOthersStopAfterTheHello) {
  TestListener rank({.handshake = std::chrono::minutes(10)});
  std::vector<Socket> others;
  for (int i = 0; i < 200; ++i) {
    others.push_back(connect_to(rank.listener.address()));
    send_bytes(others.back(), HandshakeClient(kListenerToken, kDataClaim).hello());
  }
  EXPECT_EQ(rank.call().how, DialResult::How::kOpen);
}

TEST(Listener, ItSurvivesWithoutDescriptorsAndLosesNone) {
  TestListener rank;
  EXPECT_EQ(rank.call().how, DialResult::How::kOpen);
  const int before = num_descriptors();
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  {
    // Connections that have been begun, and no descriptor left to accept them with.
    std::vector<Socket> begun;
    for (int i = 0; i < 20; ++i) begun.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rlimit none = limit;
    none.rlim_cur = 1;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const Endpoint there = rank.listener.address();
    for (const Socket& one : begun) connect(one.fd(), there.address(), there.size);
    std::this_thread::sleep_for(300ms);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  EXPECT_EQ(rank.call().how, DialResult::How::kOpen);
  EXPECT_TRUE(becomes_true([&] { return rank.num_callers() == 2; }));
  EXPECT_TRUE(becomes_true([&] { return num_descriptors() == before + 1; }))
      << before << ", " << num_descriptors();
}

}  // namespace
}  // namespace tycho
