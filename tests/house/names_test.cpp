// A qualified name is defined in one file. Linkers see neither two classes of one name nor two inline
// functions: they keep one of each, and whoever uses the other runs foreign code.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

std::string one_line(const std::string& text) {
  std::string line = std::regex_replace(text, std::regex("\\s+"), " ");
  line.erase(0, line.find_first_not_of(' '));
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// What an opening brace begins, as far as names go.
struct Scope {
  enum class Kind { kNamespace, kType, kFunction, kOther } kind = Kind::kOther;
  std::string name;
};

Scope scope_of(const std::string& head) {
  static const std::regex kNamespace("(?:^|.* )namespace ?([\\w:]*)$");
  static const std::regex kType(
      "(?:^|.*[ >])(?:class|struct|union|enum|enum class) (?:alignas\\([^)]*\\) )?([\\w:]+)(?: final)?(?: "
      ":[^:].*)?$");
  static const std::regex kFunction("(?:^|.*[ *&])([\\w:~]+)(\\(.*\\))[^()]*$");
  std::smatch found;
  if (std::regex_match(head, found, kNamespace)) return {Scope::Kind::kNamespace, found[1]};
  if (head.find('(') == std::string::npos && std::regex_match(head, found, kType))
    return {Scope::Kind::kType, found[1]};
  const bool is_local = std::regex_search(head, std::regex("\\bstatic\\b|^[^(]*="));
  if (!is_local && std::regex_match(head, found, kFunction))
    return {Scope::Kind::kFunction, found.str(1) + found.str(2)};
  return {};
}

/// Types and functions that a file defines for all others: "a::b::Type", "a::b::function(int x)".
std::set<std::string> names_defined(const std::string& text) {
  std::set<std::string> names;
  std::vector<Scope> scopes;
  const std::string code = bare_code(text);
  size_t begin = 0;
  for (size_t at = code.find_first_of("{};"); at != std::string::npos;
       at = code.find_first_of("{};", at + 1)) {
    if (code[at] == '{') {
      bool is_seen = true;  // outside this file
      bool in_type = false;
      std::string prefix;
      for (const Scope& scope : scopes) {
        is_seen &= (scope.kind == Scope::Kind::kNamespace || scope.kind == Scope::Kind::kType) &&
                   !scope.name.empty();
        in_type |= scope.kind == Scope::Kind::kType;
        prefix += scope.name + "::";
      }
      const Scope scope = is_seen ? scope_of(one_line(code.substr(begin, at - begin))) : Scope();
      const bool names_it =
          scope.kind == Scope::Kind::kType || (scope.kind == Scope::Kind::kFunction && !in_type);
      if (is_seen && names_it) names.insert(prefix + scope.name);
      scopes.push_back(scope);
    } else if (code[at] == '}' && !scopes.empty()) {
      scopes.pop_back();
    }
    begin = at + 1;
  }
  return names;
}

/// "name: file, file" for each name that two of the files define.
std::vector<std::string> defined_twice(const Sources& sources) {
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [path, text] : sources) {
    for (const std::string& name : names_defined(text)) files[name].push_back(path);
  }
  std::vector<std::string> twice;
  for (const auto& [name, paths] : files) {
    if (paths.size() < 2) continue;
    twice.push_back(name + ":");
    for (const std::string& path : paths) twice.back() += " " + path;
  }
  return twice;
}

/// Each program has its own: main, the engine's one function, what a GPU needs of its machine, and what is
/// compiled once for each instruction set, in a namespace that the build names.
bool is_a_program_s_own(const std::string& finding) {
  return finding.starts_with("main(") || finding.starts_with("tycho_engine_api()") ||
         finding.starts_with("tycho::cuda::own_nvrtc()") ||
         finding.starts_with("tycho::cuda::program_folder()") || finding.starts_with("tycho::TYCHO_ISA::");
}

TEST(Names, AreDefinedInOnePlace) {
  const Sources sources =
      read_sources({"bench", "bindings", "host", "tests", "trainer"}, {".h", ".cpp", ".cu", ".cuh"});
  for (const std::string& finding : defined_twice(sources))
    EXPECT_TRUE(is_a_program_s_own(finding)) << finding << ": give one of them a name of its own";
  std::set<std::string> names;
  for (const auto& [path, text] : sources) names.merge(names_defined(text));
  for (const char* known :
       {"tycho::FileOps", "tycho::ControlClient::State", "tycho::ExitCode",
        "tycho::read_file(const std::string& path)", "tycho::FileOps::make_dir(const std::string& path)"})
    EXPECT_TRUE(names.contains(known)) << known << ": the reader of names has overlooked it";
}

TEST(Names, ReaderFindsAnOffender) {
  const Sources sources = {
      {"a.h",
       "namespace tycho {\nclass A final : public B<C> { struct Part { int x = {}; }; };\nenum class E { k "
       "};\n"
       "inline int f(int x) { return x; }\n}"},
      {"b.h",
       "namespace tycho {\nstruct A {\n};  // struct E {}\nstruct E;\nint f(int x);\nconst char* k = "
       "\"struct E {\";\n"
       "template <typename T>\nint f(T x) { return 1'000; }\n}"},
      {"c.cpp",
       "#define X struct E {\nnamespace tycho {\nnamespace {\nstruct A { };\nint f(int x) { return 2; }\n}\n"
       "void g() { struct E { }; }\nstatic int f(int x) { return 3; }\nstruct A::Part { };\n}"},
      {"d.cpp", "namespace tycho {\nint f(int x) {\n  return 4;\n}\n}"}};
  EXPECT_EQ(defined_twice(sources),
            (std::vector<std::string>{"tycho::A: a.h b.h", "tycho::A::Part: a.h c.cpp",
                                      "tycho::f(int x): a.h d.cpp"}));
}

}  // namespace
}  // namespace tycho::house
