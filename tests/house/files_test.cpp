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

/// The words of a CMake list, its own set() variables filled in; comments do not count.
std::set<std::string> words_listed(std::string text) {
  text = std::regex_replace(text, std::regex("#[^\n]*"), "");
  const std::string list = text;
  const std::regex variable("set\\((\\w+) ([^\\s()]+)\\)");
  for (std::sregex_iterator it(list.begin(), list.end(), variable), end; it != end; ++it) {
    const std::string use = "${" + it->str(1) + "}";
    for (size_t at = 0; (at = text.find(use, at)) != std::string::npos; at += it->length(2))
      text.replace(at, use.size(), it->str(2));
  }
  text = std::regex_replace(text, std::regex("\\\\n"), " ");
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::strchr("()\";", c) != nullptr; }, ' ');
  std::set<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.insert(word);
  return words;
}

/// The paths that a list may mean: a .cmake file is included from a CMakeLists.txt beside it or above.
std::set<std::string> paths_listed(const std::string& list, const std::string& text) {
  std::set<std::string> paths;
  for (std::string word : words_listed(text)) {
    for (const char* start : {"${CMAKE_CURRENT_SOURCE_DIR}/", "${CMAKE_SOURCE_DIR}/"})
      if (word.rfind(start, 0) == 0) word.erase(0, std::strlen(start));
    for (std::string folder = list; !folder.empty();) {
      const size_t slash = folder.rfind('/');
      folder.resize(slash == std::string::npos ? 0 : slash);
      paths.insert(folder.empty() ? word : folder + "/" + word);
    }
  }
  return paths;
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
    {"trainer/recipe", "a header for each section, and the rules between its keys"},
};

TEST(Files, AreAtMost60InAFolder) {
  std::map<std::string, int> files;
  for (const auto& [path, text] : read_sources(
           {"bench", "bindings", "cmake", "docs", "host", "lua", "recipes", "scripts", "tests", "trainer"},
           {""}))
    ++files[path.substr(0, path.rfind('/'))];
  for (const auto& [folder, count] : files)
    EXPECT_TRUE(count <= 60 || kManyFiles.contains(folder))
        << folder << " has " << count << " files: group them in folders, or give a reason in kManyFiles";
}

TEST(Files, FoldersOfTheTrainerAreOfASizeToFindOnesWayIn) {
  std::map<std::string, int64_t> lines;
  std::set<std::string> top;
  for (const auto& [path, text] : read_sources({"trainer"}, kCode)) {
    lines[path.substr(0, path.rfind('/'))] += std::count(text.begin(), text.end(), '\n');
    top.insert(path.substr(0, path.find('/', 8)));
  }
  lines.erase("trainer/recipe");  // a header for each section
  for (const auto& [folder, count] : lines) EXPECT_LT(count, 5500) << folder << ": cut it by meaning";
  EXPECT_GE(top.size(), 30u);
  EXPECT_LE(top.size(), 40u);
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
  for (const auto& [path, text] : lists) listed.merge(paths_listed(path, text));
  std::set<std::string> owned;
  for (const Library& library : parse_layers(read_text(TYCHO_LAYERS)))
    owned.insert(library.files.begin(), library.files.end());
  for (const auto& [path, text] : read_sources({"bindings", "host", "trainer"}, kCode)) {
    EXPECT_TRUE(owned.count(path)) << path << " is in no library, so nothing compiles or checks it";
  }
  for (const auto& [path, text] : read_sources({"tests"}, {".cpp", ".cu"})) {
    EXPECT_TRUE(listed.count(path)) << path << " is in no CMake list, so it never runs";
  }
}

TEST(Files, RulesCatchAnOffender) {
  std::string text = "// A file.\n";
  for (int i = 0; i < 400; ++i) text += "int x;\n";
  EXPECT_TRUE(too_long(text));
  EXPECT_FALSE(too_long(text + "// long because: a table of the standard\n"));
  const std::set<std::string> paths =
      paths_listed("tests/x.cmake", "set(folder a)\nadd(x ${folder}/b.cpp # c.cpp\n d.cpp)");
  EXPECT_TRUE(paths.count("tests/a/b.cpp"));
  EXPECT_TRUE(paths.count("tests/d.cpp"));
  EXPECT_FALSE(paths.count("tests/b.cpp")) << "the name alone is not enough";
  EXPECT_FALSE(paths.count("tests/c.cpp"));
  EXPECT_FALSE(opens_with_a_comment("#pragma once\n"));
  EXPECT_TRUE(opens_with_a_comment("#!/usr/bin/env bash\n# Does it.\n"));
}

}  // namespace
}  // namespace tycho::house
