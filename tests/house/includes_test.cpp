// Headers name what they use: the precompiled header would hide it if one did not.
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <regex>
#include <utility>

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

/// Code without comments, texts and directives, so that only names are left.
std::string names_only(const std::string& text) {
  std::string code = std::regex_replace(without_comments(text), std::regex("#[^\n]*"), "");
  bool in_text = false;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '\n') in_text = false;
    if (in_text && code[i] == '\\') code[i] = code[i + 1] = ' ';
    const bool quote = code[i] == '"';
    if (in_text || quote) code[i] = ' ';
    if (quote) in_text = !in_text;
  }
  return code;
}

struct Declared {
  std::set<std::string> types, forward;  // types that are defined, and those that are only announced
};

/// Of a header, at the beginning of lines: what is nested in something else belongs to that.
Declared declared_in(const std::string& code) {
  Declared declared;
  const std::regex start("(^|\n)(struct|class|enum class|using) +([A-Za-z_]\\w*)");
  for (std::sregex_iterator it(code.begin(), code.end(), start), end; it != end; ++it) {
    const size_t after = static_cast<size_t>(it->position() + it->length());
    const bool defines = it->str(2) == "using" || code[code.find_first_of(";{", after)] == '{';
    (defines ? declared.types : declared.forward).insert(it->str(3));
  }
  return declared;
}

std::set<std::string> words_of(const std::string& code) {
  std::set<std::string> words;
  std::string word;
  for (const char c : code + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, ""));
    }
  }
  return words;
}

/// "a.h names Thing and does not include b.h" for types that a header reaches only over another header: what
/// that one includes is nobody else's business.
std::vector<std::string> indirect_types(const Sources& headers) {
  std::map<std::string, std::string> code;
  std::map<std::string, Declared> declared;
  std::map<std::string, std::set<std::string>> by_type;  // type -> headers that define it
  for (const auto& [path, text] : headers) {
    code[path] = names_only(text);
    declared[path] = declared_in(code[path]);
    for (const std::string& type : declared[path].types) by_type[type].insert(path);
  }
  std::vector<std::string> found;
  for (const auto& [path, text] : headers) {
    std::set<std::string> direct = {path};
    for (const Include& include : includes_of(text)) direct.insert(include.target);
    const std::set<std::string> reached = included_by(headers, path);
    for (const std::string& word : words_of(code[path])) {
      const auto type = by_type.find(word);
      if (type == by_type.end() || declared[path].types.contains(word) ||
          declared[path].forward.contains(word))
        continue;
      std::vector<std::string> from;
      for (const std::string& header : type->second)
        if (reached.contains(header)) from.push_back(header);
      if (from.size() == 1 && !direct.contains(from[0]))
        found.push_back(path + " names " + word + " and does not include " + from[0]);
    }
  }
  return found;
}

TEST(Includes, HeadersIncludeTheTypesThatTheyName) {
  for (const std::string& line : indirect_types(read_sources({"trainer", "bindings", "host"}, {".h"})))
    ADD_FAILURE() << line;
}

TEST(Includes, NamesATypeThatIsReachedOnlyOverAnotherHeader) {
  const Sources headers = {
      {"a.h", "struct Thing {\n  int x;\n};\nstruct Later;\n"},
      {"b.h", "#include \"a.h\"\nstruct Other : Thing {};  // Thing\n"},
      {"c.h", "#include \"b.h\"\nOther one();\nThing two();  // \"Later\"\n"},
      {"d.h", "#include \"b.h\"\nstruct Thing;\nThing* three(const char* text = \"Other\");\n"}};
  EXPECT_EQ(indirect_types(headers), (std::vector<std::string>{"c.h names Thing and does not include a.h"}));
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
