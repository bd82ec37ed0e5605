// Headers name what they use: the precompiled header would hide it if one did not.
#include <gtest/gtest.h>

#include <regex>

#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

struct Use {
  std::regex words;
  std::regex header;  // any that declares them
};

const std::vector<Use>& hidden_uses() {
  static const std::vector<Use> uses = {
      {std::regex("std::string\\b"), std::regex("string")},
      {std::regex("std::vector<"), std::regex("vector")},
      {std::regex("std::map<"), std::regex("map")},
      {std::regex("std::optional\\b"), std::regex("optional")},
      {std::regex("std::function<"), std::regex("functional")},
      {std::regex("std::filesystem\\b"), std::regex("filesystem")},
      {std::regex("std::[io]?fstream\\b"), std::regex("fstream")},
      {std::regex("std::(unique|shared)_ptr<"), std::regex("memory")},
      {std::regex("\\bfmt::"), std::regex("fmt/.*")},
      {std::regex("\\bnlohmann::|\\bJson\\b"), std::regex("nlohmann/.*")},
      {std::regex("\\bat::"), std::regex("ATen/.*")},
  };
  return uses;
}

/// All headers that a file includes, over the tree's own headers too.
std::set<std::string> included_by(const Sources& sources, const std::string& path) {
  std::set<std::string> found;
  std::vector<std::string> open = {path};
  while (!open.empty()) {
    const auto source = sources.find(open.back());
    open.pop_back();
    if (source == sources.end()) continue;
    for (const Include& include : includes_of(source->second))
      if (found.insert(include.target).second) open.push_back(include.target);
  }
  return found;
}

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex("//[^\n]*"), "");
}

/// What a header uses and reaches no include for.
std::vector<std::string> missing(const Sources& sources, const std::string& path) {
  const std::string code = without_comments(sources.at(path));
  const std::set<std::string> reached = included_by(sources, path);
  std::vector<std::string> words;
  for (const Use& use : hidden_uses()) {
    std::smatch word;
    if (!std::regex_search(code, word, use.words)) continue;
    bool named = false;
    for (const std::string& header : reached) named |= std::regex_match(header, use.header);
    if (!named) words.push_back(word.str());
  }
  return words;
}

TEST(Includes, HeadersReachWhatThePrecompiledHeaderHas) {
  const Sources sources = read_sources({"trainer", "bindings", "host"}, {".h"});
  ASSERT_GT(sources.size(), 50u);
  for (const auto& [path, text] : sources)
    for (const std::string& word : missing(sources, path))
      ADD_FAILURE() << path << ": uses " << word << " and includes no header of it";
}

TEST(Includes, AreSeenOverOtherHeaders) {
  const Sources sources = {{"a.h", "#include \"b.h\"\nstd::string s; std::vector<int> v;  // std::map<>\n"},
                           {"b.h", "#include <string>\n"}};
  EXPECT_EQ(missing(sources, "a.h"), std::vector<std::string>{"std::vector<"});
  EXPECT_TRUE(missing(sources, "b.h").empty());
}

}  // namespace
}  // namespace tycho::house
