// The walks of docs/architecture.md: their files exist, and a value comes back to a file at most once.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

struct Walk {
  std::string title;
  std::vector<std::string> files;  // "trainer/optim/adamw", in order
};

/// Reads the numbered lists below "Follow a value": "1. `room/`: file, file, which ...; file".
std::vector<Walk> walks_of(const std::string& page) {
  static const std::regex kLine("\\d+\\. `([\\w/]+/)`: (.*)"), kFile("(?:^|[,;] )(\\w+)");
  const size_t begin = page.find("## Follow a value");
  std::istringstream lines(page.substr(begin, page.find("\n## ", begin + 1) - begin));
  std::vector<Walk> walks;
  bool in_list = false;
  std::string title;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, kLine)) {
      in_list = in_list && line.empty();
      if (!line.empty()) title = line;
      continue;
    }
    if (!in_list) walks.push_back({title, {}});
    in_list = true;
    const std::string room = found[1], files = found[2];
    for (std::sregex_iterator it(files.begin(), files.end(), kFile), end; it != end; ++it) {
      static const std::set<std::string> kProse = {"which", "with", "where", "in", "or", "across", "and"};
      if (!kProse.contains(it->str(1))) walks.back().files.push_back(room + it->str(1));
    }
  }
  return walks;
}

int times_back(const Walk& walk) {
  return static_cast<int>(walk.files.size() -
                          std::set<std::string>(walk.files.begin(), walk.files.end()).size());
}

bool is_there(const std::string& file) {
  for (const char* ending : {".h", ".cpp", ".cu", ".lua"})
    if (std::filesystem::exists(std::string(TYCHO_SOURCE_DIR) + "/" + file + ending)) return true;
  return false;
}

TEST(Walks, NameFilesThatExistAndComeBackAtMostOnce) {
  const std::vector<Walk> walks =
      walks_of(read_text(std::string(TYCHO_SOURCE_DIR) + "/docs/architecture.md"));
  ASSERT_EQ(walks.size(), 6U);
  for (const Walk& walk : walks) {
    EXPECT_GE(walk.files.size(), 4U) << walk.title;
    EXPECT_LE(times_back(walk), 1) << walk.title;
    for (const std::string& file : walk.files)
      EXPECT_TRUE(is_there(file)) << "docs/architecture.md: \"" << walk.title << "\" names " << file;
  }
}

TEST(Walks, AreReadFromAPage) {
  const std::vector<Walk> walks = walks_of(
      "## Other\n\n1. `x/`: y\n\n## Follow a value\n\nText.\n\nA key:\n\n1. `a/`: b, c, which keeps it; d\n"
      "2. `e/f/`: g\n3. `a/`: c (*back*), again\n\nBack:\n\n1. `a/`: b, and it is there\n\n## End\n\n1. "
      "`z/`: z\n");
  ASSERT_EQ(walks.size(), 2U);
  EXPECT_EQ(walks[0].title, "A key:");
  EXPECT_EQ(walks[0].files, (std::vector<std::string>{"a/b", "a/c", "a/d", "e/f/g", "a/c", "a/again"}));
  EXPECT_EQ(times_back(walks[0]), 1);
  EXPECT_EQ(walks[1].files, std::vector<std::string>{"a/b"});
}

}  // namespace
}  // namespace tycho::house
