// Reading recipe files: limits, absent against unreadable, UTF-8.
#include "bindings/define/source_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace tycho {
namespace {

namespace fs = std::filesystem;

class SourceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tycho-source-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  fs::path folder_;
};

TEST_F(SourceFileTest, GivesTheTextOfAFile) {
  EXPECT_EQ(*read_source(write("a.lua", "return 1\n")).text, "return 1\n");
  EXPECT_EQ(*read_source(write("empty.lua", "")).text, "");
}

TEST_F(SourceFileTest, TellsAbsentFromUnreadable) {
  write("base.lua", "");
  const SourceFile absent = read_source((folder_ / "bse.lua").string());
  EXPECT_TRUE(absent.absent);
  EXPECT_NE(absent.message.find("; did you mean " + (folder_ / "base.lua").string() + "?"), std::string::npos)
      << absent.message;
  fs::create_symlink("loop.lua", folder_ / "loop.lua");
  const SourceFile loop = read_source((folder_ / "loop.lua").string());
  EXPECT_FALSE(loop.absent);
  EXPECT_NE(loop.message.find("Too many levels of symbolic links"), std::string::npos);
  EXPECT_FALSE(read_source(folder_.string()).absent);
}

TEST_F(SourceFileTest, WaitsForNoNamedPipe) {
  const std::string pipe = (folder_ / "pipe.lua").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(read_source(pipe).message.find("is a named pipe; a recipe is a file, or /dev/stdin"),
            std::string::npos);
}

TEST_F(SourceFileTest, TakesNoTextThatWasReadInPart) {
  const SourceFile damaged = read_source("/proc/self/mem");  // can be opened; reading at its start fails
  EXPECT_FALSE(damaged.text);
  EXPECT_EQ(damaged.message, "cannot read /proc/self/mem: Input/output error");
}

TEST_F(SourceFileTest, RefusesMoreThanAMebibyte) {
  EXPECT_TRUE(read_source(write("big.lua", std::string(1 << 20, 'x'))).text);
  EXPECT_FALSE(read_source(write("bigger.lua", std::string((1 << 20) + 1, 'x'))).text);
}

TEST(Utf8, FindsTheFirstByteThatBelongsToNoCharacter) {
  for (const char* good :
       {"", "plain", "caf\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_FALSE(find_utf8_error(good)) << good;
  const std::pair<const char*, size_t> bad[] = {
      {"ab\xFFz", 2},      {"caf\xE9", 3},          {"\xC0\x80", 0},     {"\xE0\x80\x80", 0},
      {"\xED\xA0\x80", 0}, {"\xF4\x90\x80\x80", 0}, {"\xF0\x9F\x98", 0}, {"x\x80", 1},
      {"\xC3\x28", 0},     {"\xE2\x28\xA1", 0},     {"\xE2\x82\x28", 0}, {"\xF5\x80\x80\x80", 0}};
  for (const auto& [text, at] : bad) EXPECT_EQ(find_utf8_error(text), at) << text;
}

}  // namespace
}  // namespace tycho
