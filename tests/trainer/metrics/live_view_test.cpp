// Tests of the live view as text: golden screens, widths, colour, foreign text.
#include "trainer/metrics/live_view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

ViewState some_state() {
  ViewState state;
  state.run = some_run();
  state.now = some_step();
  state.data_wait_share = 0.003;
  for (int step = 1; step <= 1240; ++step) state.losses.add(3.4 + 7 * std::exp(-step / 200.0));
  state.elapsed_s = 1550;
  state.ends_at = "14:32";
  state.checkpoint = {"step 1000 saved, 1.50 GB in 2.1 s", 300};
  state.warning = {"1192 data retry x2 (s3 slow)", 60};
  return state;
}

std::string screen(const ViewState& state, const ViewStyle& style) {
  std::string out = "\n";
  for (const ViewLine& line : draw_view(state, style)) out += line.text + "\n";
  return out;
}

TEST(LiveViewTest, ShowsARunOnAWideTerminal) {
  EXPECT_EQ(screen(some_state(), {119, true, false}), R"(
 mpt-125m  runs/mpt-125m  NVIDIA H200  bf16  recipe 7c1e91d0  pins: seq_len=8192                     ^C saves and stops
 1240/4800 ba ━━━━━━━━━━━━━━━╸────────────────────────────────────────────  25.8 %  eta 1:14:10  ends 14:32
 loss 3.413 ⠉⠒⠒⠤⠤⠤⠤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀  lr 5.8e-4  grad 0.71  419.4 K tok/s  407 TFLOP/s (361 causal)
 mfu 41.1 % (36.4 % causal)  data wait 0.3 %  mem 61.0 GB of 141 GB
 ckpt step 1000 saved, 1.50 GB in 2.1 s                                                                       5 min ago
 ! 1192 data retry x2 (s3 slow)                                                                                60 s ago
)");
}

TEST(LiveViewTest, ShowsTheLossOfTheLastEvaluationBesideThatOfTraining) {
  ViewState state = some_state();
  EXPECT_EQ(screen(state, {119, true, false}).find("eval"), std::string::npos);
  state.eval_loss = 3.5;
  EXPECT_NE(screen(state, {119, true, false}).find("⣀  eval 3.500  lr 5.8e-4"), std::string::npos);
}

TEST(LiveViewTest, ShowsARunIn80Columns) {
  EXPECT_EQ(screen(some_state(), {79, true, false}), R"(
 mpt-125m  runs/mpt-125m  NVIDIA H200  bf16  recipe 7c1e91…  ^C saves and stops
 1240/4800 ba ━━━━━━━━────────────────────────  25.8 %  eta 1:14:10  ends 14:32
 loss 3.413 ⠑⠒⠤⠤⢄⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀  lr 5.8e-4  grad 0.71  419.4 K tok/s
 407 TFLOP/s (361 causal)  mfu 41.1 % (36.4 % causal)  data wait 0.3 %
 mem 61.0 GB of 141 GB
 ckpt step 1000 saved, 1.50 GB in 2.1 s                               5 min ago
 ! 1192 data retry x2 (s3 slow)                                        60 s ago
)");
}

TEST(LiveViewTest, AnEvaluationHasALineOfItsOwn) {
  ViewState state = some_state();
  state.evaluation = {"step 1000 on c4: loss 3.780, perplexity 43.80, 504 tokens in 0.0 s", 0};
  state.event = {"profile written", 0};
  const std::string text = screen(state, {79, true, false});
  EXPECT_NE(text.find("\n eval step 1000 on c4: loss 3.780, perplexity 43.80, 504 tokens in 0.0 s\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" · profile written\n"), std::string::npos) << text;
}

TEST(LiveViewTest, ShowsARunInAscii) {
  EXPECT_EQ(screen(some_state(), {79, false, false}), R"(
 mpt-125m  runs/mpt-125m  NVIDIA H200  bf16  recipe 7c1e91~  ^C saves and stops
 1240/4800 ba ========------------------------  25.8 %  eta 1:14:10  ends 14:32
 loss 3.413 '---............  lr 5.8e-4  grad 0.71  419.4 K tok/s
 407 TFLOP/s (361 causal)  mfu 41.1 % (36.4 % causal)  data wait 0.3 %
 mem 61.0 GB of 141 GB
 ckpt step 1000 saved, 1.50 GB in 2.1 s                               5 min ago
 ! 1192 data retry x2 (s3 slow)                                        60 s ago
)");
}

TEST(LiveViewTest, ShowsWhereItBeginsAndHowItEnded) {
  ViewState state;
  state.run = some_run();
  state.run.first_step = 1000;
  EXPECT_EQ(screen(state, {79, true, false}), R"(
 mpt-125m  runs/mpt-125m  NVIDIA H200  bf16  recipe 7c1e91…  ^C saves and stops
 1000/4800 ba ━━━━━━━━━╸─────────────────────────────────────  20.8 %  starting
)");
  state.now = some_step(4800);
  state.elapsed_s = 6000;
  state.end_reason = "done";
  const std::string last = screen(state, {79, true, false});
  EXPECT_NE(last.find(" 100.0 %  took 1:40:00\n"), std::string::npos) << last;
  EXPECT_NE(last.find("\n ■ done\n"), std::string::npos) << last;
}

TEST(LiveViewTest, WrapsTheReasonOfAnEndAndCutsAWarningAfterThreeLines) {
  ViewState state;
  state.run = some_run();
  state.end_reason =
      "stopped by SIGTERM after step 120, saved; the same command resumes from there, at any time";
  for (int i = 0; i < 60; ++i) state.warning.text += "word ";
  const std::string text = screen(state, {79, true, false});
  EXPECT_NE(text.find("\n ■ stopped by SIGTERM after step 120, saved; the same command resumes from\n"
                      "   there, at any time\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("word …\n ■"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8) << text;
}

TEST(LiveViewTest, IsNeverWiderThanTheTerminalAndKnowsItsColumns) {
  ViewState state = some_state();
  state.run.run_dir = std::string(300, 'd');
  state.warning.text = std::string(300, '!');
  for (int width = 20; width <= 200; ++width) {
    for (const bool unicode : {true, false}) {
      for (const ViewLine& line : draw_view(state, {width, unicode, false})) {
        EXPECT_LE(line.columns, width);
        EXPECT_EQ(line.columns, display_width(line.text)) << line.text;
      }
    }
  }
}

TEST(LiveViewTest, IsAsciiWhenAsked) {
  ViewState state = some_state();
  state.run.run_name = "naïve";
  for (const ViewLine& line : draw_view(state, {119, false, true})) {
    EXPECT_TRUE(std::all_of(line.text.begin(), line.text.end(), [](unsigned char c) { return c < 0x80; }))
        << line.text;
  }
}

TEST(LiveViewTest, LosesNothingWithoutColour) {
  const auto coloured = draw_view(some_state(), {79, true, true}),
             plain = draw_view(some_state(), {79, true, false});
  ASSERT_EQ(coloured.size(), plain.size());
  EXPECT_NE(coloured[0].text.find('\x1b'), std::string::npos);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i].text.find('\x1b'), std::string::npos);
    EXPECT_EQ(plain[i].columns, coloured[i].columns);
  }
}

TEST(LiveViewTest, ShowsForeignTextHarmlessly) {
  ViewState state = some_state();
  state.run.run_name = "x\x1b[2J";
  state.warning.text = "a\nb";
  const std::string text = screen(state, {79, true, false});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("! a b"), std::string::npos);
}

TEST(LiveViewTest, LeavesMfuOutWhereThePeakIsUnknownAndCountsLittleWorkInGigaflops) {
  ViewState state = some_state();
  state.now.mfu = state.now.mfu_causal = std::nullopt;
  state.now.tflops = 0.0208;
  state.now.tflops_causal = 0.0192;
  const std::string text = screen(state, {119, true, false});
  EXPECT_EQ(text.find("mfu"), std::string::npos) << text;
  EXPECT_NE(text.find("20.8 GFLOP/s (19.2 causal)"), std::string::npos) << text;
}

TEST(HistoryTest, KeepsAllOfALongRunInBoundedMemory) {
  History history;
  for (int i = 0; i < 1 << 20; ++i) history.add(i);
  EXPECT_LT(history.values().size(), 256u);
  EXPECT_GE(history.values().size(), 128u);
  const double bucket = (1 << 20) / 128.0;
  EXPECT_DOUBLE_EQ(history.values().front(), (bucket - 1) / 2);  // the mean of the first bucket
  EXPECT_TRUE(std::is_sorted(history.values().begin(), history.values().end()));
}

TEST(HistoryTest, LeavesOutWhatIsNotFinite) {
  History history;
  history.add(1);
  history.add(std::nan(""));
  history.add(2);
  EXPECT_EQ(history.values(), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace tycho
