// Tests of the live view on a pseudo terminal.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

/// The side of a pseudo terminal that a person looks at: reads all that is written to it, and replays the few
/// control sequences of the view on a screen of lines.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    if (::openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) std::abort();
    reader_ = std::thread([this] {
      char buffer[4096];
      for (ssize_t n; (n = ::read(master_, buffer, sizeof buffer)) > 0;)
        output_.append(buffer, static_cast<size_t>(n));
    });
  }
  ~Terminal() {
    finish();
    ::close(master_);
  }

  int fd() const { return slave_; }
  void resize(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    ::ioctl(slave_, TIOCSWINSZ, &size);
  }
  /// All output, after the last writer is gone.
  const std::string& finish() {
    if (slave_ >= 0) ::close(slave_);
    slave_ = -1;
    if (reader_.joinable()) reader_.join();
    return output_;
  }
  /// The lines that the output leaves on a screen that is wide enough.
  std::vector<std::string> screen() {
    std::vector<std::string> lines(1);
    size_t row = 0, column = 0;
    const std::string& text = finish();
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\r') {
        column = 0;
      } else if (text[i] == '\n') {
        if (++row == lines.size()) lines.emplace_back();
      } else if (text[i] == '\x1b') {
        i += 2;  // "\x1b["
        size_t count = 0;
        for (; text[i] >= '0' && text[i] <= '9'; ++i) count = 10 * count + static_cast<size_t>(text[i] - '0');
        if (text[i] == 'A') row -= std::min(row, count);
        if (text[i] == 'K') lines[row].resize(column);
        if (text[i] == 'J') lines[row].resize(column), lines.resize(row + 1);
      } else {
        lines[row].resize(std::max(lines[row].size(), column + 1), ' ');
        lines[row][column++] = text[i];
      }
    }
    return lines;
  }

 private:
  int master_ = -1, slave_ = -1;
  std::string output_;
  std::thread reader_;
};

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// ASCII keeps a column a byte.
class TerminalReporterTest : public testing::Test {
 protected:
  void SetUp() override {
    int master = -1, slave = -1;
    if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0)
      GTEST_SKIP() << "this machine has no pseudo terminals (is /dev/pts mounted?)";
    ::close(master);
    ::close(slave);
  }
  ScopedEnv term_{"TERM", "xterm"}, locale_{"LC_ALL", "C"}, no_colour_{"NO_COLOR", nullptr};
};

TEST_F(TerminalReporterTest, RedrawsInPlaceAndLeavesTheLastState) {
  Terminal terminal(80);
  {
    const auto reporter = make_terminal_reporter(terminal.fd());
    reporter->run_start(some_run());
    for (int step = 1; step <= 3; ++step) {
      reporter->step(some_step(step), true);
      std::this_thread::sleep_for(std::chrono::milliseconds(110));
    }
    reporter->event("checkpoint", "step 3 saved", {});
    reporter->event("resume", "from step 0", {{"step", 0}});
    reporter->event("warning", "slow disk", {});
    reporter->step(some_step(4800), true);
    reporter->run_end("done", {});
  }
  const std::vector<std::string> expected = {
      " mpt-125m  runs/mpt-125m  NVIDIA H200  bf16  recipe 7c1e91d0  pins: seq_len=81~",
      " 4800/4800 ba ==========================================  100.0 %  took 0:00:00",
      " loss 3.413 ----------------  lr 5.8e-4  grad 0.71  419.4 K tok/s",
      " 407 TFLOP/s (361 causal)  mfu 41.1 % (36.4 % causal)  data wait 0.3 %",
      " mem 61.0 GB of 141 GB",
      " ckpt step 3 saved",
      " - from step 0",
      " ! step 3: slow disk",
      " = done",
      ""};
  EXPECT_EQ(terminal.screen(), expected);
}

TEST_F(TerminalReporterTest, ShowsTheStepOfTheCheckpointThatCouldBeRead) {
  Terminal terminal(80);
  RunInfo run = some_run();
  run.first_step = 1000;
  {
    const auto reporter = make_terminal_reporter(terminal.fd());
    reporter->run_start(run);
    reporter->event("resume", "resumed from step 500", {{"step", 500}});
    reporter->run_end("stopped", {});
  }
  EXPECT_EQ(terminal.screen()[1].rfind("  500/4800 ba ", 0), 0u) << terminal.screen()[1];
}

TEST_F(TerminalReporterTest, DrawsAtMostTenTimesASecond) {
  Terminal terminal(80);
  const auto start = std::chrono::steady_clock::now();
  {
    const auto reporter = make_terminal_reporter(terminal.fd());
    reporter->run_start(some_run());
    for (int step = 1; step <= 20000; ++step) reporter->step(some_step(step), true);
    reporter->run_end("done", {});
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const size_t draws = count(terminal.finish(), "recipe");
  EXPECT_GE(draws, 2u);
  EXPECT_LE(static_cast<double>(draws), 3 + 10 * seconds);
}

TEST_F(TerminalReporterTest, FollowsTheWidthOfTheTerminal) {
  Terminal terminal(100);
  {
    const auto reporter = make_terminal_reporter(terminal.fd());
    reporter->run_start(some_run());
    terminal.resize(50);
    reporter->run_end("done", {});
  }
  const std::string& output = terminal.finish();
  // The terminal wrapped the two wide lines into four rows: the next drawing begins three rows up.
  EXPECT_NE(output.find("\x1b[3A"), std::string::npos) << output;
  for (const std::string& line : terminal.screen()) EXPECT_LE(line.size(), 49u) << line;
}

TEST_F(TerminalReporterTest, HasNoColourWhenDisabled) {
  Terminal coloured(80), plain(80);
  make_terminal_reporter(coloured.fd())->run_start(some_run());
  ScopedEnv no_colour("NO_COLOR", "1");
  make_terminal_reporter(plain.fd())->run_start(some_run());
  EXPECT_NE(coloured.finish().find("\x1b[1m"), std::string::npos);
  EXPECT_EQ(plain.finish().find("\x1b[1m"), std::string::npos);
}

TEST_F(TerminalReporterTest, IsPlainLinesOnADumbTerminal) {
  for (const char* term : {"dumb", static_cast<const char*>(nullptr)}) {
    ScopedEnv scoped("TERM", term);
    Terminal terminal(80);
    {
      const auto reporter = make_terminal_reporter(terminal.fd());
      reporter->run_start(some_run());
      reporter->step(some_step(), true);
    }
    const std::string& output = terminal.finish();
    EXPECT_EQ(output.find('\x1b'), std::string::npos);
    EXPECT_NE(output.find("step=1240 loss=3.413"), std::string::npos) << output;
  }
}

TEST_F(TerminalReporterTest, LeavesTheCursorBelowTheViewWhenARunBreaksOff) {
  Terminal terminal(80);
  make_terminal_reporter(terminal.fd())->run_start(some_run());
  EXPECT_EQ(terminal.screen().back(), "");
  EXPECT_EQ(terminal.screen().size(), 3u);
}

TEST_F(TerminalReporterTest, ShowsTheWholeReasonOfAStop) {
  Terminal terminal(80);
  {
    const auto reporter = make_terminal_reporter(terminal.fd());
    reporter->run_start(some_run());
    reporter->run_end(
        "stopped by SIGINT after step 120, saved; the same command resumes from there, whenever you like",
        {});
  }
  const std::vector<std::string> lines = terminal.screen();
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[2], " = stopped by SIGINT after step 120, saved; the same command resumes from");
  EXPECT_EQ(lines[3], "   there, whenever you like");
}

/// What a terminal echoes for Ctrl-C stands where the cursor is, and so does what is said of it.
TEST_F(TerminalReporterTest, LeavesNothingOfAnInterruptBehind) {
  Terminal terminal(80);
  {
    const auto reporter = make_terminal_reporter(terminal.fd());
    reporter->run_start(some_run());
    reporter->step(some_step(1), true);
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    reporter->step(some_step(2), true);
    const std::string echo =
        "^C\r\x1b[K saving after this step, then stopping; Ctrl-C again within 2 s ends at once\r";
    ASSERT_EQ(::write(terminal.fd(), echo.data(), echo.size()), static_cast<ssize_t>(echo.size()));
    reporter->run_end("stopped by SIGINT after step 2, saved", {});
  }
  for (const std::string& line : terminal.screen()) {
    EXPECT_EQ(line.find("^C"), std::string::npos) << line;
    EXPECT_EQ(line.find("again within"), std::string::npos) << line;
  }
  EXPECT_EQ(terminal.screen()[terminal.screen().size() - 2], " = stopped by SIGINT after step 2, saved");
  EXPECT_EQ(terminal.screen()[0].rfind(" mpt-125m  runs/mpt-125m", 0), 0u);
}

TEST_F(TerminalReporterTest, ShowsWhatTheRecipeAsksFor) {
  Terminal terminal(80);
  {
    const auto reporter = make_terminal_reporter(terminal.fd());
    RunInfo run = some_run();
    run.show = {"loss_ema", "eval.val.loss", "typo"};
    reporter->run_start(run);
    reporter->step(some_step(1), true);
    reporter->metric(1, "loss_ema", 3.44);
    reporter->event("eval", "evaluated", {{"loss", 3.6}, {"name", "val"}, {"total", false}});
    reporter->run_end("done", {});
  }
  const std::vector<std::string> lines = terminal.screen();
  EXPECT_EQ(lines[4], " loss_ema 3.440  eval.val.loss 3.600  typo none yet");
  EXPECT_EQ(lines[6], " ! log.show names typo, but nothing recorded it: see metrics.jsonl for the");
}

TEST_F(TerminalReporterTest, OutlivesATerminalThatIsGone) {
  EXPECT_NO_THROW({
    const auto reporter = make_terminal_reporter(-1);
    reporter->run_start(some_run());
    reporter->step(some_step(), true);
    reporter->run_end("done", {});
  });
}

}  // namespace
}  // namespace tycho
