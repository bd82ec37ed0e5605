// Lines of a growing file, against what was written.
#include "trainer/metrics/line_tail.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "tests/trainer/base/temp_dir.h"

namespace tycho {
namespace {

class LineTailTest : public testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  /// Returns the numbers "n" of the new lines.
  std::vector<int> read() {
    std::vector<int> numbers;
    tail_.read([&](const Json& record) { numbers.push_back(record.at("n").get<int>()); });
    return numbers;
  }
  TempDir dir_;
  std::string path_ = dir_ / "lines";
  LineTail tail_{path_};
};

using Numbers = std::vector<int>;

TEST_F(LineTailTest, PassesEachLineOnce) {
  EXPECT_EQ(read(), Numbers{}) << "no file yet";
  append("{\"n\":1}\n{\"n\":2}\n");
  EXPECT_EQ(read(), (Numbers{1, 2}));
  EXPECT_EQ(read(), Numbers{});
  append("{\"n\":3}\n");
  EXPECT_EQ(read(), Numbers{3});
  EXPECT_FALSE(tail_.was_replaced());
}

TEST_F(LineTailTest, ALineThatIsBeingWrittenWaitsAndATornOneIsSkipped) {
  append("{\"n\":1}\n{\"n\":");
  EXPECT_EQ(read(), Numbers{1});
  append("2}");
  EXPECT_EQ(read(), Numbers{2}) << "whole without its end";
  append("\n{\"n\":3, \"to");
  EXPECT_EQ(read(), Numbers{});
  append("\n[4]\n\n{\"n\":5}\n");
  EXPECT_EQ(read(), Numbers{5});
}

TEST_F(LineTailTest, LinesOfAnyLengthComeBackWholeHoweverTheyArrive) {
  std::mt19937 random(7);
  std::string text;
  Numbers all;
  for (int i = 0; i < 300; ++i) {
    const size_t length = i == 97 ? 1'500'000 : random() % 300;
    text += Json({{"n", i}, {"padding", std::string(length, 'x')}}).dump() + "\n";
    all.push_back(i);
  }
  Numbers got;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::min<size_t>(text.size() - at, random() % 400'000);
    append(text.substr(at, length));
    at += length;
    for (const int n : read()) got.push_back(n);
  }
  EXPECT_EQ(got, all);
}

TEST_F(LineTailTest, ReadsNoFurtherThanAskedFor) {
  append("{\"n\":1}\n");
  const int64_t end = tail_.size();
  append("{\"n\":2}\n");
  Numbers first;
  tail_.read([&](const Json& record) { first.push_back(record.at("n").get<int>()); }, end);
  EXPECT_EQ(first, Numbers{1});
  EXPECT_EQ(read(), Numbers{2});
}

TEST_F(LineTailTest, KnowsAFileThatWasCutRemovedOrWrittenAnew) {
  const std::string lines = "{\"n\":1}\n{\"n\":2}\n";
  append(lines);
  read();
  std::filesystem::resize_file(path_, 8);
  EXPECT_TRUE(tail_.was_replaced());
  tail_.rewind();
  EXPECT_EQ(read(), Numbers{1});
  std::ofstream(path_) << "{\"n\":7}\n{\"n\":8}\n{\"n\":9}\n";
  EXPECT_TRUE(tail_.was_replaced()) << "longer than before, and another";
  tail_.rewind();
  EXPECT_EQ(read(), (Numbers{7, 8, 9}));
  std::filesystem::copy_file(path_, path_ + ".copy");
  std::filesystem::rename(path_ + ".copy", path_);
  append("{\"n\":10}\n");
  EXPECT_FALSE(tail_.was_replaced()) << "a copy, as rsync makes it, goes on";
  EXPECT_EQ(read(), Numbers{10});
  std::filesystem::remove(path_);
  EXPECT_TRUE(tail_.was_replaced());
}

}  // namespace
}  // namespace tycho
