// The happens-before checker by itself: pairs that an edge orders, the same pairs without it, and mutants.
#include "tests/standin_gpu/runtime/order.h"

#include <gtest/gtest.h>

namespace standin {
namespace {

using Kind = Action::Kind;
using Text = std::optional<std::string>;

constexpr int kHost = 0, kCompute = 1, kTransfer = 2, kOther = 3;
constexpr long kEvent = 7;
const Bytes kWhole = {0x1000, 0x1100}, kFront = {0x1000, 0x1040}, kBack = {0x1080, 0x1100};

class OrderTest : public testing::Test {
 protected:
  Text write(int stream, const Bytes& bytes, const std::string& name = "writes") {
    return order_.apply({.kind = Kind::kEnqueue, .stream = stream, .name = name, .writes = {bytes}});
  }
  Text read(int stream, const Bytes& bytes, const std::string& name = "reads") {
    return order_.apply({.kind = Kind::kEnqueue, .stream = stream, .name = name, .reads = {bytes}});
  }
  Text host_writes(const Bytes& bytes, int thread = kHost) {
    return order_.apply({.kind = Kind::kHost, .thread = thread, .name = "fills", .writes = {bytes}});
  }
  Text record(int stream, long event = kEvent) {
    return order_.apply({.kind = Kind::kRecord, .stream = stream, .event = event, .name = "records"});
  }
  Text waits(int stream, long event = kEvent) {
    return order_.apply({.kind = Kind::kStreamWait, .stream = stream, .event = event, .name = "waits"});
  }
  Text host_waits(long event = kEvent, int thread = kHost) {
    return order_.apply({.kind = Kind::kEventWait, .thread = thread, .event = event, .name = "host waits"});
  }
  Text host_waits_for(int stream) {
    return order_.apply({.kind = Kind::kActorWait, .stream = stream, .name = "host waits"});
  }
  Text ends_step() { return order_.apply({.kind = Kind::kStep}); }
  /// One step in which a stream reads what another wrote, behind two waits, of which the second adds nothing.
  Text step() {
    for (const auto& found :
         {write(kCompute, kFront), write(kCompute, kBack), record(kCompute), waits(kTransfer),
          waits(kTransfer), read(kTransfer, kBack), record(kTransfer), waits(kCompute), ends_step()})
      if (found) return found;
    return {};
  }

  Order order_;
};

TEST_F(OrderTest, NothingOrdersTwoStreams) {
  EXPECT_FALSE(write(kCompute, kWhole, "product"));
  const Text found = read(kTransfer, kFront, "ncclSend");
  ASSERT_TRUE(found);
  EXPECT_EQ(
      *found,
      "nothing orders two uses of the bytes [0x1000, 0x1040): a write by product on stream 1 in step 1, "
      "and a read by ncclSend on stream 2 in step 1");
}

TEST_F(OrderTest, AWriteAfterAReadIsAPairToo) {
  EXPECT_FALSE(read(kTransfer, kBack));
  EXPECT_FALSE(read(kCompute, kBack));
  EXPECT_TRUE(write(kCompute, kWhole));
}

TEST_F(OrderTest, ReadsAndOtherBytesAreNone) {
  EXPECT_FALSE(write(kCompute, kFront));
  EXPECT_FALSE(write(kTransfer, kBack));
  EXPECT_FALSE(read(kCompute, {0x1040, 0x1080}));
  EXPECT_FALSE(read(kTransfer, {0x1040, 0x1080}));
  EXPECT_FALSE(write(kOther, {0x1100, 0x1200}));
  EXPECT_EQ(order_.num_stream_pairs(), 0);
}

TEST_F(OrderTest, AnEventOrdersWhatCameBeforeItsRecord) {
  write(kCompute, kFront), record(kCompute), write(kCompute, kBack), waits(kTransfer);
  EXPECT_FALSE(read(kTransfer, kFront));
  EXPECT_EQ(order_.num_stream_pairs(), 1);
  EXPECT_TRUE(read(kTransfer, kBack));
}

TEST_F(OrderTest, AWaitMeansTheNewestRecordOfItsTime) {
  record(kCompute), write(kCompute, kFront), waits(kTransfer), record(kCompute);
  EXPECT_TRUE(read(kTransfer, kFront));
}

TEST_F(OrderTest, EventsOrderAcrossAThirdStream) {
  write(kCompute, kFront), record(kCompute), waits(kOther), record(kOther, 8), waits(kTransfer, 8);
  EXPECT_FALSE(write(kTransfer, kFront));
}

TEST_F(OrderTest, AWaitForAnEventThatWasNotRecordedIsAnError) {
  EXPECT_EQ(waits(kTransfer), "waits in step 1 waits for an event that was not recorded");
  EXPECT_TRUE(host_waits());
}

TEST_F(OrderTest, StreamZeroIsAStreamLikeOthers) {
  write(kCompute, kFront);
  EXPECT_FALSE(write(kCompute, kBack));
  EXPECT_TRUE(write(kOther, kWhole));
}

TEST_F(OrderTest, WhatTheHostFillsIsOrderedWithWhatItEnqueuesLater) {
  EXPECT_FALSE(host_writes(kWhole));
  EXPECT_FALSE(read(kCompute, kWhole, "a copy"));
  EXPECT_EQ(order_.num_host_pairs(), 1);
  EXPECT_TRUE(host_writes(kFront)) << "the copy may not have begun";
}

TEST_F(OrderTest, TheHostWaitsForEventsStreamsAndEverything) {
  for (const int way : {0, 1, 2}) {
    order_ = Order();
    write(kCompute, kFront), record(kCompute), write(kTransfer, kBack);
    if (way == 0) host_waits();
    if (way == 1) host_waits_for(kCompute);
    if (way == 2) host_waits_for(-1);
    EXPECT_FALSE(host_writes(kFront));
    EXPECT_FALSE(read(kOther, kFront)) << "the host enqueues it after its wait";
    EXPECT_EQ(host_writes(kBack).has_value(), way != 2);
  }
}

TEST_F(OrderTest, AQueryIsAnsweredDoneOnceSomethingHasWaited) {
  EXPECT_TRUE(order_.is_done(kEvent, -1)) << "never recorded";
  write(kCompute, kWhole), record(kCompute);
  EXPECT_FALSE(order_.is_done(kEvent, -1));
  host_waits_for(kTransfer);
  EXPECT_FALSE(order_.is_done(kEvent, -1));
  host_waits_for(kCompute);
  EXPECT_TRUE(order_.is_done(kEvent, -1));
  EXPECT_TRUE(order_.is_done(-1, kCompute));
  constexpr int kThread = 4;
  Order other = order_;
  EXPECT_TRUE(other.apply({.kind = Kind::kHost, .thread = kThread, .writes = {kWhole}}));
  EXPECT_FALSE(order_.apply({.kind = Kind::kDone, .thread = kThread, .event = kEvent}));
  EXPECT_FALSE(host_writes(kWhole, kThread));
}

TEST_F(OrderTest, ThreadsAreOrderedByWhatTheyHandOver) {
  constexpr int kThread = 4;
  const auto hand_over = [&](int from, int to) {
    order_.apply({.kind = Kind::kHandOver, .thread = from, .event = 1000});
    order_.apply({.kind = Kind::kTakeOver, .thread = to, .event = 1000});
  };
  EXPECT_FALSE(host_writes(kFront));
  hand_over(kHost, kThread);
  EXPECT_FALSE(host_writes(kFront, kThread));
  EXPECT_FALSE(host_writes(kBack, kThread));
  Order other = order_;
  EXPECT_TRUE(other.apply({.kind = Kind::kHost, .thread = kHost, .writes = {kBack}}));
  hand_over(kThread, kHost);
  EXPECT_FALSE(host_writes(kBack));
}

TEST_F(OrderTest, MemoryThatWentBackToTheSystemIsOtherMemory) {
  write(kCompute, kWhole);
  order_.apply({.kind = Kind::kFree, .writes = {kFront}});
  EXPECT_FALSE(write(kTransfer, kFront));
  EXPECT_TRUE(write(kTransfer, kBack));
}

TEST_F(OrderTest, AWaitThatIsLeftOutIsReportedUnlessAnotherDoesIt) {
  const auto without = [&](long wait) {
    order_ = Order({Mutant::Kind::kNoWait, 2, wait});
    EXPECT_FALSE(step());
    EXPECT_EQ(order_.changed(), "");
    const Text in_step = step(), in_next = in_step ? in_step : step();
    EXPECT_EQ(order_.changed(), "the wait of waits");
    return in_next.has_value();
  };
  EXPECT_FALSE(without(1)) << "the second does it";
  EXPECT_FALSE(order_.changed_nothing());
  EXPECT_FALSE(without(2));
  EXPECT_TRUE(order_.changed_nothing()) << "the first has done it";
  EXPECT_TRUE(without(3)) << "the next step writes before this step's reads";
}

TEST_F(OrderTest, ARecordThatIsMadeEarlyIsReported) {
  order_ = Order({Mutant::Kind::kEarlyRecord, 2, 1});
  EXPECT_FALSE(step());
  EXPECT_EQ(order_.changed(), "");
  EXPECT_TRUE(step());
  EXPECT_EQ(order_.changed(), "the record of records");
  EXPECT_FALSE(order_.changed_nothing());
}

TEST_F(OrderTest, AQueryThatIsAnsweredEarlyOrdersNothing) {
  order_ = Order({Mutant::Kind::kEarlyDone, 1, 2});
  EXPECT_FALSE(order_.is_told_early());
  EXPECT_TRUE(order_.is_told_early());
  EXPECT_FALSE(order_.is_told_early());
}

TEST_F(OrderTest, ALineKeepsAnAction) {
  const Action action = {.kind = Kind::kEnqueue,
                         .thread = 3,
                         .stream = 5,
                         .event = 12,
                         .name = "ncclAllGather of optimizer",
                         .reads = {kFront, kBack},
                         .writes = {kWhole}};
  const Action again = action_of(line_of(action));
  EXPECT_EQ(line_of(again), line_of(action));
  EXPECT_EQ(again.name, action.name);
  EXPECT_EQ(again.reads[1].begin, kBack.begin);
  EXPECT_EQ(again.writes[0].end, kWhole.end);
}

}  // namespace
}  // namespace standin
