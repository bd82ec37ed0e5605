// Lines of progress at a terminal and in a log.
#include "host/data/progress_line.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>

namespace tycho {
namespace {

using namespace std::chrono_literals;

std::string contents(FILE* file) {
  std::string text;
  std::rewind(file);
  std::array<char, 256> part{};
  while (const size_t size = std::fread(part.data(), 1, part.size(), file)) text.append(part.data(), size);
  return text;
}

TEST(ProgressLineTest, ALogGetsALineWhenItIsDue) {
  FILE* log = std::tmpfile();
  ASSERT_NE(log, nullptr);
  ProgressLine at_once(log, 0s), later(log, 1h);
  at_once.show([] { return "10 %"; });
  at_once.show([] { return "20 %"; });
  later.show([]() -> std::string {
    ADD_FAILURE() << "the text of a line that is not due was asked for";
    return "30 %";
  });
  at_once.clear();
  EXPECT_EQ(contents(log), "10 %\n20 %\n");
  std::fclose(log);
}

TEST(ProgressLineTest, ATerminalHasOneLine) {
  int own = -1, terminal = -1;
  if (::openpty(&own, &terminal, nullptr, nullptr, nullptr) != 0)
    GTEST_SKIP() << "this machine has no pseudo terminals (is /dev/pts mounted?)";
  FILE* out = ::fdopen(terminal, "w");
  ProgressLine line(out, 1h);
  line.show([] { return "10 %"; });
  line.show([] { return "20 %"; });
  std::fflush(out);
  std::string text;
  while (text.find("20 %") == std::string::npos) {
    std::array<char, 512> shown{};
    const ssize_t size = ::read(own, shown.data(), shown.size());
    ASSERT_GT(size, 0);
    text.append(shown.data(), static_cast<size_t>(size));
  }
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("\r10 %")) << text;
  EXPECT_NE(text.find("\r20 %"), std::string::npos) << text;
  std::fclose(out);
  ::close(own);
}

}  // namespace
}  // namespace tycho
