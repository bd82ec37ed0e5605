// Classes and headers that carry too much.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

constexpr int kMostMembers = 23, kMostIncludes = 20;

/// Number of data members by class: names that end in _ in a declaration of the class itself.
std::map<std::string, int> members_of_classes(const std::string& text) {
  static const std::regex kClass("(^|[^\\w ]) *class (\\w+(?:::\\w+)*)(?: final)?(?: :[^;{(]*)?\\s*\\{");
  static const std::regex kMember("\\b[A-Za-z]\\w*_\\b");
  const std::string code = std::regex_replace(bare_code(text), std::regex("\\s+"), " ");
  std::map<std::string, int> members;
  for (std::sregex_iterator it(code.begin(), code.end(), kClass), end; it != end; ++it) {
    int depth = 1, count = 0;
    std::string statement;
    for (auto at = static_cast<size_t>(it->position() + it->length()); depth > 0 && at < code.size(); ++at) {
      const char c = code[at];
      depth += c == '{' || c == '(';
      depth -= c == '}' || c == ')';
      if (depth == 1 && c == '}' && code.substr(at + 1, 2).find_first_of(";,") == std::string::npos)
        statement.clear();  // the end of a function
      if (depth > 1 || c == '}' || c == ')') continue;
      statement += c;
      if (c != ';') continue;
      count += static_cast<int>(std::distance(
          std::sregex_iterator(statement.begin(), statement.end(), kMember), std::sregex_iterator()));
      statement.clear();
    }
    members[it->str(2)] = std::max(members[it->str(2)], count);
  }
  return members;
}

int includes_of_product(const std::string& text) {
  int count = 0;
  for (const Include& include : includes_of(text))
    count += include.target.starts_with("trainer/") || include.target.starts_with("bindings/") ||
             include.target.starts_with("host/");
  return count;
}

void expect_at_most(int most, const std::map<std::string, int>& found, const char* what) {
  for (const auto& [name, count] : found)
    EXPECT_LE(count, most) << name << " has too many " << what << ": give a part of it away";
}

TEST(Sizes, NoClassHasMoreThan23DataMembers) {
  std::map<std::string, int> found;
  for (const auto& [path, text] : read_sources({"trainer", "host", "bindings"}, {".h", ".cpp", ".cu"}))
    for (const auto& [name, count] : members_of_classes(text)) found[name] = std::max(found[name], count);
  ASSERT_GT(found["Trainer"], 5) << "members are not found";
  expect_at_most(kMostMembers, found, "data members");
}

TEST(Sizes, NoHeaderHasMoreThan20IncludesOfTheProduct) {
  std::map<std::string, int> found;
  for (const auto& [path, text] : read_sources({"trainer", "host", "bindings"}, {".h"}))
    found[path] = includes_of_product(text);
  ASSERT_GT(found["trainer/recipe/train_config.h"], 5) << "includes are not found";
  expect_at_most(kMostIncludes, found, "includes");
}

TEST(Sizes, DataMembersAreCountedAsCompilersDo) {
  const auto members = members_of_classes(
      "class A : public B {\n public:\n  explicit A(int x) : x_(x), y_{x} {}\n  int x() const { return x_; "
      "}\n"
      "  void set(int a_, int b_ = 1);\n private:\n  struct Slot { int inner_; };\n  int x_ = 0, y_ = "
      "f(z_);\n"
      "  std::map<int, std::string> map_{};  // other_\n  Slot slot_;\n};\n"
      "template <class T_> class None;\nenum class Kind { kOne_ };\nstruct Plain { int a_; };\n");
  EXPECT_EQ(members, (std::map<std::string, int>{{"A", 4}}));
}

}  // namespace
}  // namespace tycho::house
