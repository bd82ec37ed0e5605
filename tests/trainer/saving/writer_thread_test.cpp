// One job at a time, on the thread or in place, whose end says what went wrong.
#include "trainer/saving/writer_thread.h"

#include <gtest/gtest.h>

#include <latch>
#include <stdexcept>

namespace tycho {
namespace {

TEST(WriterThread, IsInFlightUntilItIsJoined) {
  WriterThread writer;
  EXPECT_FALSE(writer.is_in_flight());
  std::latch may_end(1);
  writer.start(/*async=*/true, [&] { may_end.wait(); });
  EXPECT_TRUE(writer.is_in_flight());
  EXPECT_FALSE(writer.has_ended());
  may_end.count_down();
  while (!writer.has_ended()) std::this_thread::yield();
  EXPECT_TRUE(writer.is_in_flight());
  writer.join();
  EXPECT_FALSE(writer.is_in_flight());
  const WriterThread::End end = writer.take_end();
  EXPECT_EQ(end.failure, nullptr);
  EXPECT_GE(end.seconds, 0);
  EXPECT_FALSE(writer.has_ended());
}

TEST(WriterThread, RunsInPlaceWhenItIsNotAsynchronous) {
  WriterThread writer;
  std::thread::id ran_on;
  writer.start(/*async=*/false, [&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_FALSE(writer.is_in_flight());
  EXPECT_TRUE(writer.has_ended());
}

TEST(WriterThread, KeepsTheFailureOfAJobUntilItIsTaken) {
  WriterThread writer;
  for (const bool async : {true, false}) {
    writer.start(async, [] { throw std::runtime_error("full"); });
    writer.join();
    const WriterThread::End end = writer.take_end();
    ASSERT_NE(end.failure, nullptr);
    EXPECT_THROW(std::rethrow_exception(end.failure), std::runtime_error);
    EXPECT_EQ(writer.take_end().failure, nullptr);
  }
}

}  // namespace
}  // namespace tycho
