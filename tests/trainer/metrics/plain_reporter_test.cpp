// Tests of the key=value lines.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
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
    reporter.run_end("done", {});
  });
  EXPECT_EQ(text,
            "run=mpt-125m dir=runs/mpt-125m device=\"NVIDIA H200\" precision=bf16 ranks=1\n"
            "recipe=7c1e91d0aa55 pins=\"seq_len=8192\" params=124440576 steps=4800\n"
            "tokens=2516582400 flops_per_token=9.7e+08 flops_per_token_causal=8.6e+08\n"
            "peak_tflops=989.5\n"
            "step=1240 loss=3.413  lr=5.8e-4  grad=0.71  tok/s=419.4K mfu=41.1% eta=1:14:10\n"
            "event=warning text=\"data retry x2 (s3 slow)\"\n"
            "event=end text=done\n");
}

TEST(PlainReporterTest, AReaderThatDoesNotReadHoldsNothingUp) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto begin = std::chrono::steady_clock::now();
  {
    const auto reporter = make_plain_reporter(ends[1]);
    reporter->run_start(some_run());
    for (int step = 1; step < 30'000; ++step) reporter->step(some_step(step), true);
    reporter->run_end("done", {});
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  close(ends[0]);
  close(ends[1]);
}

TEST(PlainReporterTest, HasNoColumnForAPeakThatIsUnknownAndSaysWhenALossIsNotANumber) {
  StepMetrics step = some_step();
  step.mfu = step.mfu_causal = std::nullopt;
  step.loss = std::nan("");
  RunInfo run = some_run();
  run.peak_flops = std::nullopt;
  run.pins = {};
  const std::string text = written([&](Reporter& reporter) {
    reporter.run_start(run);
    reporter.step(step, true);
  });
  EXPECT_EQ(lines_of(text).back(), "step=1240 loss=nan    lr=5.8e-4  grad=0.71  tok/s=419.4K eta=1:14:10");
  for (const char* unknown : {"n/a", "peak_tflops", "mfu", "pins", "first_step"})
    EXPECT_EQ(text.find(unknown), std::string::npos) << text;
}

TEST(PlainReporterTest, AlignsStepsAndFitsIntoAScreen) {
  RunInfo run = some_run();
  run.total_steps = 100000;
  const std::string text = written([&](Reporter& reporter) {
    reporter.run_start(run);
    const double losses[] = {11.2345, 6.8812, 0.69314}, rates[] = {1e-7, 3.07e-4, 1e-3},
                 norms[] = {12.3456, 0.7123, 1};
    const double speeds[] = {512, 81234.5, 2.5e6};
    const int64_t steps[] = {1, 9990, 100000};
    for (int i = 0; i < 3; ++i) {
      StepMetrics step = some_step(steps[i]);
      step.loss = losses[i], step.lr = rates[i], step.grad_norm = norms[i], step.tokens_per_s = speeds[i];
      step.mfu = i == 0 ? 0.052 : 0.4112;
      reporter.step(step, true);
    }
  });
  const std::vector<std::string> lines = lines_of(text);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
  const std::vector<std::string> steps(lines.end() - 3, lines.end());
  for (const char* column : {" loss=", " lr=", " grad=", " tok/s=", " mfu=", " eta="}) {
    for (const std::string& line : steps)
      EXPECT_EQ(line.find(column), steps[0].find(column)) << column << "\n" << line;
  }
}

TEST(PlainReporterTest, ShowsWhatTheRecipeAsksForUnderItsOwnStep) {
  RunInfo run = some_run();
  run.show = {"loss_ema", "eval.val.loss", "data_wait_s", "typo"};
  const std::string text = written([&](Reporter& reporter) {
    reporter.run_start(run);
    reporter.step(some_step(1239), false);
    reporter.metric(1239, "loss_ema", 3.5);
    reporter.step(some_step(1240), true);
    reporter.metric(1240, "loss_ema", 3.44);
    reporter.metric(1240, "another", 1);
    reporter.step(some_step(1241), true);
    reporter.event("eval", "step 1241 evaluated", {{"loss", 3.6}, {"name", "val"}, {"total", true}});
    reporter.run_end("done", {});
  });
  const std::string shown = text.substr(text.find("step=1240"));
  EXPECT_EQ(
      shown,
      "step=1240 loss=3.413  lr=5.8e-4  grad=0.71  tok/s=419.4K mfu=41.1% eta=1:14:10\n"
      "step=1240 loss_ema=3.440  data_wait_s=0.0037\n"
      "step=1241 loss=3.413  lr=5.8e-4  grad=0.71  tok/s=419.4K mfu=41.1% eta=1:14:10\n"
      "event=eval text=\"step 1241 evaluated\"\n"
      "step=1241 loss_ema=3.440  eval.val.loss=3.600  data_wait_s=0.0037\n"
      "event=warning text=\"log.show names typo, but nothing recorded it: see metrics.jsonl for the names\"\n"
      "event=end text=done\n");
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
