// Messages there and back; what is too long is cut, what is broken is refused.
#include "trainer/rendezvous/meet/control_messages.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(ControlMessages, ComeBackAsTheyWere) {
  const Member member = read_member(bytes_of(Member{3, 4711, "node3", "10.0.0.3", 40001}));
  EXPECT_EQ(member.rank, 3);
  EXPECT_EQ(member.pid, 4711);
  EXPECT_EQ(member.host, "node3");
  EXPECT_EQ(member.address, "10.0.0.3");
  EXPECT_EQ(member.port, 40001);
  const Cause cause = read_cause(bytes_of(Cause{2, ExitCode::kStorage, "the disk is full"}));
  EXPECT_EQ(cause.rank, 2);
  EXPECT_EQ(cause.code, ExitCode::kStorage);
  EXPECT_EQ(cause.text, "the disk is full");
  const LossReport loss = read_loss_report(bytes_of(LossReport{{0, 5}, "closed"}));
  EXPECT_EQ(loss.ranks, (std::vector<int>{0, 5}));
  EXPECT_EQ(loss.what, "closed");
  const ProgressReport report = read_report(bytes_of(ProgressReport{-1, "saving", 1.5, "barrier", 0.25}));
  EXPECT_EQ(report.step, -1);
  EXPECT_EQ(report.phase, "saving");
  EXPECT_EQ(report.phase_s, 1.5);
  EXPECT_EQ(report.collective, "barrier");
  EXPECT_EQ(report.collective_s, 0.25);
  const MarkQuestion question = read_mark_question(bytes_of(MarkQuestion{7, true, "interrupt 1"}));
  EXPECT_EQ(question.number, 7U);
  EXPECT_TRUE(question.sets);
  EXPECT_EQ(question.name, "interrupt 1");
  const MarkAnswer answer = read_mark_answer(bytes_of(MarkAnswer{7, true}));
  EXPECT_EQ(answer.number, 7U);
  EXPECT_TRUE(answer.is_marked);
  EXPECT_EQ(read_text(bytes_of_text("a world")), "a world");
}

TEST(ControlMessages, AreCutToWhatOneFrameHolds) {
  const std::string long_text(1 << 20, 'x');
  EXPECT_LT(bytes_of(Cause{0, ExitCode::kFailure, long_text}).size(), kMaxFrame);
  EXPECT_LT(bytes_of(LossReport{std::vector<int>(100000, 1), long_text}).size(), kMaxFrame);
  EXPECT_LT(bytes_of(ProgressReport{0, long_text, 0, long_text, 0}).size(), kMaxFrame);
  EXPECT_EQ(read_cause(bytes_of(Cause{0, ExitCode::kFailure, long_text})).text.size(), 16U << 10);
}

TEST(ControlMessages, BrokenOnesAreRefused) {
  const std::string cause = bytes_of(Cause{2, ExitCode::kStorage, "the disk is full"});
  for (size_t n = 0; n < cause.size(); ++n) EXPECT_THROW(read_cause(cause.substr(0, n)), Error) << n;
  EXPECT_THROW(read_cause(cause + "x"), Error);
  WireWriter many;
  many.u32(0xffffffff);
  EXPECT_THROW(read_loss_report(many.bytes()), Error);
  EXPECT_THROW(read_member(""), Error);
  EXPECT_THROW(read_report("x"), Error);
  EXPECT_THROW(read_mark_question("x"), Error);
  EXPECT_THROW(read_mark_answer("x"), Error);
  EXPECT_THROW(read_text("x"), Error);
}

}  // namespace
}  // namespace tycho
