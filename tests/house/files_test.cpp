// Rules about files: none too long without a reason, each opens with a sentence, none forgotten by CMake.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <regex>
#include <sstream>

#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

const std::vector<std::string> kCode = {".h", ".cpp", ".cu", ".cuh"};

bool too_long(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n') > 400 && text.find("long because: ") == std::string::npos;
}

bool opens_with_a_comment(const std::string& text) {
  return std::regex_search(text, std::regex("^(#!.*\n)?(//|--|#) \\S"));
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The file names of a CMake list; comments do not count.
std::set<std::string> names_listed(const std::string& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return std::strchr("()\";", c) != nullptr; }, ' ');
    std::istringstream words(line);
    for (std::string word; words >> word;) names.insert(name_of(word));
  }
  return names;
}

TEST(Files, AreAtMost400LinesOrSayWhyNot) {
  auto endings = kCode;
  for (const char* ending : {".lua", ".cmake", "CMakeLists.txt", ".sh", ".py"}) endings.push_back(ending);
  for (const auto& [path, text] : read_sources({"bench", "bindings", "cmake", "containers", "host", "lua",
                                                "recipes", "scripts", "tests", "trainer"},
                                               endings)) {
    EXPECT_FALSE(too_long(text)) << path
                                 << " is over 400 lines: split it, or write a comment \"long because: ...\"";
  }
}

/// Folders that are long for a reason.
const std::map<std::string, std::string> kManyFiles = {
    {"tests/golden/errors", "one file per message"},
};

TEST(Files, AreAtMost40InAFolder) {
  std::map<std::string, int> files;
  for (const auto& [path, text] : read_sources(
           {"bench", "bindings", "cmake", "docs", "host", "lua", "recipes", "scripts", "tests", "trainer"},
           {""}))
    ++files[path.substr(0, path.rfind('/'))];
  for (const auto& [folder, count] : files)
    EXPECT_TRUE(count <= 40 || kManyFiles.contains(folder))
        << folder << " has " << count << " files: group them in folders, or give a reason in kManyFiles";
}

TEST(Files, OpenWithASentence) {
  auto endings = kCode;
  for (const char* ending : {".lua", ".cmake", "CMakeLists.txt"}) endings.push_back(ending);
  for (const auto& [path, text] :
       read_sources({"bench", "bindings", "cmake", "host", "lua", "recipes", "tests", "trainer"}, endings)) {
    EXPECT_TRUE(opens_with_a_comment(text)) << path << ": its first line should say what it is for";
  }
}

TEST(Files, AreAllListedInCmake) {
  std::set<std::string> listed;
  const auto lists =
      read_sources({"bench", "bindings", "host", "tests", "trainer"}, {"CMakeLists.txt", ".cmake"});
  for (const auto& [path, text] : lists) listed.merge(names_listed(text));
  for (const auto& [path, text] : read_sources({"bindings", "host", "trainer"}, kCode)) {
    EXPECT_TRUE(listed.count(name_of(path)))
        << path << " is in no CMake list, so nothing compiles or checks it";
  }
  for (const auto& [path, text] : read_sources({"tests"}, {".cpp", ".cu"})) {
    EXPECT_TRUE(listed.count(name_of(path))) << path << " is in no CMake list, so it never runs";
  }
}

TEST(Files, RulesCatchAnOffender) {
  std::string text = "// A file.\n";
  for (int i = 0; i < 400; ++i) text += "int x;\n";
  EXPECT_TRUE(too_long(text));
  EXPECT_FALSE(too_long(text + "// long because: a table of the standard\n"));
  EXPECT_EQ(names_listed("add(x a/b.cpp # c.cpp\n d.cpp)"),
            (std::set<std::string>{"add", "x", "b.cpp", "d.cpp"}));
  EXPECT_FALSE(opens_with_a_comment("#pragma once\n"));
  EXPECT_TRUE(opens_with_a_comment("#!/usr/bin/env bash\n# Does it.\n"));
}

}  // namespace
}  // namespace tycho::house
