// Output whose reader stops, comes back, or goes away.
#include "trainer/metrics/screen_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Two connected descriptors: what is written to `in` comes out of `out`.
struct Ends {
  ~Ends() {
    for (const int fd : {in, out})
      if (fd >= 0) close(fd);
  }
  /// All that can be read now.
  std::string read_all() const {
    std::string text;
    std::array<char, 65536> buffer;
    for (pollfd file = {out, POLLIN, 0}; poll(&file, 1, 0) > 0;) {
      const ssize_t n = read(out, buffer.data(), buffer.size());
      if (n <= 0) break;
      text.append(buffer.data(), static_cast<size_t>(n));
    }
    return text;
  }
  int in = -1, out = -1;
};

enum class Kind { kPipe, kSocket, kTerminal };

class ScreenWriterTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    int ends[2] = {-1, -1};
    if (GetParam() == Kind::kPipe) {
      ASSERT_EQ(pipe(ends), 0);
      ends_.out = ends[0], ends_.in = ends[1];
    } else if (GetParam() == Kind::kSocket) {
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      ends_.out = ends[0], ends_.in = ends[1];
    } else {
      termios raw{};
      if (openpty(&ends_.out, &ends_.in, nullptr, nullptr, nullptr) != 0)
        GTEST_SKIP() << "this machine has no pseudo terminals (is /dev/pts mounted?)";
      tcgetattr(ends_.in, &raw);
      cfmakeraw(&raw);
      tcsetattr(ends_.in, TCSANOW, &raw);
    }
  }
  /// Numbered lines until the reader takes no more and some are kept.
  int fill(ScreenWriter& writer) const {
    int lines = 0;
    for (; lines < 40'000; ++lines) writer.print(line(lines));
    return lines;
  }
  static std::string line(int number) { return "line " + std::to_string(number) + "\n"; }
  /// All that the writer has kept, too.
  std::string read_what_is_kept(ScreenWriter& writer) const {
    std::string text;
    for (int quiet = 0; quiet < 3;) {
      writer.draw("");
      const std::string more = ends_.read_all();
      text += more;
      quiet = more.empty() ? quiet + 1 : 0;
    }
    return text;
  }
  Ends ends_;
};

TEST_P(ScreenWriterTest, LinesThatAreNotReadNowAreKept) {
  ScreenWriter writer(ends_.in);
  const auto begin = Clock::now();
  const int lines = fill(writer);  // more than a pipe holds, less than 1 MiB
  EXPECT_LT(seconds_since(begin), 20) << "it waited for the reader";
  std::string expected;
  for (int i = 0; i < lines; ++i) expected += line(i);
  EXPECT_EQ(read_what_is_kept(writer), expected);
}

TEST_P(ScreenWriterTest, KeptLinesAppearWhenTheReaderReadsAgainWithoutAnotherCall) {
  ScreenWriter writer(ends_.in);
  const int lines = fill(writer);
  std::string expected, text;
  for (int i = 0; i < lines; ++i) expected += line(i);
  const auto begin = Clock::now();
  for (pollfd file = {ends_.out, POLLIN, 0}; text.size() < expected.size() && seconds_since(begin) < 60;) {
    poll(&file, 1, 1000);
    text += ends_.read_all();
  }
  EXPECT_EQ(text, expected);
  writer.print("last\n");
  EXPECT_EQ(read_what_is_kept(writer), "last\n");
}

TEST_P(ScreenWriterTest, BeyondAMebibyteLinesAreDroppedAndCounted) {
  ScreenWriter writer(ends_.in);
  const std::string big = std::string(1 << 10, 'x') + "\n";
  const auto begin = Clock::now();
  for (int i = 0; i < 4000; ++i) writer.print(big);
  writer.print(std::string(4 << 10, 'y'));  // the beginning of a line
  EXPECT_LT(seconds_since(begin), 60) << "one wait of a second, not one for each line";
  std::string text = read_what_is_kept(writer);
  writer.print("a line\nlast\n");
  text += read_what_is_kept(writer);
  size_t whole = 0;
  for (size_t at = 0; (at = text.find(big, at)) != std::string::npos; at += big.size()) ++whole;
  EXPECT_GT(whole, 1000u);
  const std::string note = "... " + std::to_string(4000 - whole + 1) +
                           " lines were dropped here: nothing was reading this output\nlast\n";
  EXPECT_NE(text.find(note), std::string::npos) << text.substr(whole * big.size());
}

TEST_P(ScreenWriterTest, APictureIsDroppedWhileAnythingIsKept) {
  ScreenWriter writer(ends_.in);
  EXPECT_TRUE(writer.draw("seen"));
  EXPECT_EQ(ends_.read_all(), "seen");
  fill(writer);
  EXPECT_FALSE(writer.draw("picture"));
  EXPECT_EQ(read_what_is_kept(writer).find("picture"), std::string::npos);
  EXPECT_TRUE(writer.draw("again"));
}

TEST_P(ScreenWriterTest, TheDescriptorItselfGoesOnWaitingForItsReader) {
  const ScreenWriter writer(ends_.in);
  EXPECT_EQ(fcntl(ends_.in, F_GETFL) & O_NONBLOCK, 0) << "other processes share it";
}

TEST_P(ScreenWriterTest, AnAnswerWaitsForItsReader) {
  std::string text, answer;
  for (int i = 0; i < 100'000; ++i) answer += line(i);
  std::thread reader([&] {
    std::this_thread::sleep_for(milliseconds(100));
    std::array<char, 4096> buffer;
    while (text.size() < answer.size()) {
      const ssize_t n = read(ends_.out, buffer.data(), buffer.size());
      if (n <= 0) break;
      text.append(buffer.data(), static_cast<size_t>(n));
    }
  });
  ScreenWriter writer(ends_.in);
  EXPECT_TRUE(writer.write_all(answer, [] { return false; }));
  reader.join();
  EXPECT_EQ(text, answer);
}

TEST_P(ScreenWriterTest, AnAnswerThatIsNotReadEndsWithASignal) {
  ScreenWriter writer(ends_.in);
  int asked = 0;
  EXPECT_TRUE(writer.write_all(std::string(4 << 20, 'x'), [&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
}

TEST_P(ScreenWriterTest, AReaderThatHasGoneIsAnErrorOfAnAnswerAlone) {
  if (GetParam() == Kind::kTerminal) GTEST_SKIP() << "a terminal that has gone takes everything";
  ScreenWriter writer(ends_.in);
  close(std::exchange(ends_.out, -1));
  const auto begin = Clock::now();
  writer.print("lost\n");
  EXPECT_FALSE(writer.draw("lost"));
  EXPECT_FALSE(writer.write_all("lost\n", [] { return false; }));
  EXPECT_EQ(errno, EPIPE);
  writer.finish(milliseconds(60'000));
  EXPECT_LT(seconds_since(begin), 30);
}

TEST_P(ScreenWriterTest, TheEndWaitsOnlyAsLongAsItsReaderReads) {
  ScreenWriter writer(ends_.in);
  fill(writer);
  const auto begin = Clock::now();
  writer.finish(milliseconds(300));
  EXPECT_GE(seconds_since(begin), 0.3);
  EXPECT_LT(seconds_since(begin), 30);
}

INSTANTIATE_TEST_SUITE_P(Readers, ScreenWriterTest,
                         testing::Values(Kind::kPipe, Kind::kSocket, Kind::kTerminal));

TEST(ScreenWriterOfATerminalTest, CtrlSStopsNothing) {
  Ends ends;
  if (openpty(&ends.out, &ends.in, nullptr, nullptr, nullptr) != 0)
    GTEST_SKIP() << "this machine has no pseudo terminals (is /dev/pts mounted?)";
  ScreenWriter writer(ends.in);
  writer.print("before\n");
  ASSERT_EQ(::write(ends.out, "\x13", 1), 1);  // Ctrl-S
  // The line discipline takes it in its own time.
  for (int i = 0; i < 12'000; ++i) {
    pollfd file = {ends.in, POLLOUT, 0};
    if (poll(&file, 1, 0) == 0) break;
    std::this_thread::sleep_for(milliseconds(5));
  }
  const auto begin = Clock::now();
  for (int i = 0; i < 100; ++i) writer.print("after\n");
  EXPECT_LT(seconds_since(begin), 30);
  ASSERT_EQ(::write(ends.out, "\x11", 1), 1);  // Ctrl-Q
  std::string text;
  writer.print("the end\n");
  for (int i = 0; i < 12'000 && text.find("the end") == std::string::npos; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    writer.draw("");
    text += ends.read_all();
  }
  EXPECT_NE(text.find("before"), std::string::npos);
  EXPECT_NE(text.find("the end"), std::string::npos) << text;
}

}  // namespace
}  // namespace tycho
