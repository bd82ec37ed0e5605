// What ranks tell each other beside tensors: texts, and the numbers of everywhere callbacks.
#include "trainer/comm/collective_strings.h"

#include <gtest/gtest.h>

#include "tests/trainer/comm/thread_world.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(GatherTextsTest, EveryRankGetsEveryTextInOrder) {
  ThreadWorld(3).run([](Communicator& world) {
    const std::string mine = world.rank() == 1 ? "" : std::string(static_cast<size_t>(world.rank() + 1), 'x');
    EXPECT_EQ(all_gather_strings(world, mine), (std::vector<std::string>{"x", "", "xxx"}));
  });
}

TEST(DistTest, GathersTheNumbersOfAllRanks) {
  ThreadWorld(2).run([](Communicator& world) {
    const auto dist = make_dist(world);
    const double r = world.rank();
    EXPECT_EQ(dist->gather({r, 10 * r}, "x.lua:3"), (std::vector<std::vector<double>>{{0, 0}, {1, 10}}));
    dist->leave(false);
  });
}

std::vector<std::string> messages_of(const std::function<void(Dist&, Communicator&)>& body) {
  std::vector<std::string> messages(2);
  ThreadWorld(2).run([&](Communicator& world) {
    const auto dist = make_dist(world);
    bool failed = true;
    try {
      body(*dist, world);
      failed = false;
    } catch (const Error& error) {
      messages[static_cast<size_t>(world.rank())] = error.what();
    }
    dist->leave(failed);
  });
  return messages;
}

TEST(DistTest, ARankThatFailedIsNamedToThoseThatWait) {
  const auto messages = messages_of([](Dist& dist, Communicator& world) {
    if (world.rank() == 1) throw Error("x.lua:2: mine alone");
    EXPECT_FALSE(dist.told_of_failure());
    EXPECT_THROW(dist.gather({1}, "x.lua:3"), Error);
    EXPECT_TRUE(dist.told_of_failure());
    dist.gather({1}, "x.lua:4");
  });
  EXPECT_EQ(messages[0], "[dist] rank 1 failed in this callback");
}

TEST(DistTest, ARankThatLeftIsNamedToo) {
  const auto messages = messages_of([](Dist& dist, Communicator& world) {
    if (world.rank() == 0) dist.gather({1}, "x.lua:3");
  });
  EXPECT_NE(messages[0].find("rank 1 has left the callback, but rank 0 calls dist at x.lua:3"),
            std::string::npos);
}

TEST(DistTest, CallsAtDifferentLinesNameBoth) {
  const auto messages = messages_of(
      [](Dist& dist, Communicator& world) { dist.gather({1}, world.rank() == 0 ? "x.lua:3" : "x.lua:5"); });
  for (const std::string& message : messages)
    EXPECT_EQ(message,
              "[dist] rank 0 calls dist at x.lua:3, rank 1 at x.lua:5: every rank must make the same calls");
}

TEST(DistTest, DifferentAmountsAreRefused) {
  const auto messages = messages_of([](Dist& dist, Communicator& world) {
    dist.gather(std::vector<double>(static_cast<size_t>(world.rank() + 1)), "x.lua:3");
  });
  EXPECT_EQ(messages[0], "[dist] x.lua:3: rank 0 passes 1 numbers, rank 1 passes 2");
  EXPECT_EQ(messages[1], messages[0]);
}

}  // namespace
}  // namespace tycho
