// Tests of the key=value lines.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

/// What a reporter writes into a file.
template <class Actions>
std::string written(const Actions& actions) {
  TempDir dir;
  const std::string path = dir / "out";
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  actions(*make_plain_reporter(fd));
  ::close(fd);
  return text_of(path);
}

TEST(PlainReporterTest, WritesBannerRecordsEventsAndEnd) {
  const std::string text = written([](Reporter& reporter) {
    reporter.run_start(some_run());
    reporter.step(some_step(1239), false);
    reporter.step(some_step(1240), true);
    reporter.event("warning", "data retry x2 (s3 slow)", {});
    reporter.run_end("done");
  });
  EXPECT_EQ(
      text,
      "run=mpt-125m dir=runs/mpt-125m device=\"NVIDIA H200\" precision=bf16 ranks=1 recipe=7c1e91d0aa55 "
      "pins=\"seq_len=8192\"\n"
      "params=124440576 steps=4800 tokens=2516582400 first_step=0 flops_per_token=9.7e+08 "
      "flops_per_token_causal=8.6e+08 peak_tflops=989.5\n"
      "step=1240/4800 loss=3.413 lr=5.8e-4 grad_norm=0.71 tokens_per_s=419430 tflops=406.8 "
      "tflops_causal=360.7 mfu=41.1% mfu_causal=36.4% mem=61.0GB wait=0.3% eta=1:14:10 tokens=650117120\n"
      "event=warning text=\"data retry x2 (s3 slow)\"\n"
      "event=end text=done\n");
}

TEST(PlainReporterTest, SaysSoWhenAPeakIsUnknownOrALossIsNotANumber) {
  StepMetrics step = some_step();
  step.mfu = step.mfu_causal = std::nullopt;
  step.loss = std::nan("");
  const std::string text = written([&](Reporter& reporter) { reporter.step(step, true); });
  EXPECT_NE(text.find("loss=nan "), std::string::npos);
  EXPECT_NE(text.find("mfu=n/a mfu_causal=n/a "), std::string::npos);
}

TEST(PlainReporterTest, KeepsAnEventOnItsLine) {
  const std::string text =
      written([](Reporter& reporter) { reporter.event("stop", "a\nstep=1\x1b[2J", {}); });
  EXPECT_EQ(text, "event=stop text=\"a step=1?[2J\"\n");
}

TEST(PlainReporterTest, OutlivesAReaderThatWentAway) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  const auto old = std::signal(SIGPIPE, SIG_IGN);
  EXPECT_NO_THROW(make_plain_reporter(ends[1])->step(some_step(), true));
  std::signal(SIGPIPE, old);
  ::close(ends[1]);
}

}  // namespace
}  // namespace tycho
