// Tests of lines that no editor reads.
#include "host/repl/plain_line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace tycho {
namespace {

class PlainLineTest : public ::testing::Test {
 protected:
  PlainLineTest() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~PlainLineTest() override {
    close(ends_[0]);
    end();
  }
  void type(const std::string& text) {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  LineEnd read() {
    line_ = "";
    return read_plain_line(
        ends_[0], buffered_, [this] { return std::exchange(interrupted_, false); }, line_);
  }
  std::string next() { return read() == LineEnd::kLine ? line_ : "no line"; }

  std::array<int, 2> ends_ = {-1, -1};
  std::string buffered_, line_;
  bool interrupted_ = false;
};

TEST_F(PlainLineTest, IsTheNextOneOfWhatWasPasted) {
  type("one\n\ntwo\nthr");
  EXPECT_EQ(next(), "one");
  EXPECT_EQ(next(), "");
  EXPECT_EQ(next(), "two");
  type("ee\n");
  EXPECT_EQ(next(), "three");
}

TEST_F(PlainLineTest, MayLackItsEndWhereTheFileEnds) {
  type("last");
  end();
  EXPECT_EQ(next(), "last");
  EXPECT_EQ(read(), LineEnd::kClosed);
}

TEST_F(PlainLineTest, IsDroppedByCtrlC) {
  type("one\nhalf of two");
  EXPECT_EQ(next(), "one");
  interrupted_ = true;
  EXPECT_EQ(read(), LineEnd::kInterrupted);
  type("three\n");
  EXPECT_EQ(next().substr(0, 5), "three") << "half of two was typed before Ctrl-C";
}

}  // namespace
}  // namespace tycho
