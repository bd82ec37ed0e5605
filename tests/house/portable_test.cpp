// Instructions of x86-64 stand between conditions, so that everything compiles for 64-bit Arm.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

/// Returns the lines of `text` that only x86-64 has and that no condition keeps from other machines.
std::vector<int> unguarded_lines(const std::string& text) {
  constexpr std::array kWords = {"intrin", "cpuid", "__builtin_cpu", "__rdtsc",
                                 "_mm_pause"};  // a search is fast
  if (std::none_of(kWords.begin(), kWords.end(),
                   [&](const char* word) { return text.find(word) != std::string::npos; }))
    return {};
  static const std::regex kOnlyX86(
      "#include <(\\w+intrin|cpuid)\\.h>|__builtin_cpu_(supports|init|is)\\(|"
      "\\b__(rdtsc|cpuid|get_cpuid)\\w*\\(|\\b_mm_pause\\(");
  static const std::regex kCondition("\\b(__x86_64__|__AVX\\w*|__AMX\\w*|TYCHO_X86_KERNELS)\\b");
  std::vector<bool> guards;  // one for each #if that is open
  std::vector<int> found;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("#if")) guards.push_back(std::regex_search(line, kCondition));
    if (line.starts_with("#elif") && !guards.empty()) guards.back() = std::regex_search(line, kCondition);
    if (line.starts_with("#else") && !guards.empty()) guards.back() = false;
    if (line.starts_with("#endif") && !guards.empty()) guards.pop_back();
    const bool is_guarded = std::find(guards.begin(), guards.end(), true) != guards.end();
    if (!is_guarded && std::regex_search(line, kOnlyX86)) found.push_back(number);
  }
  return found;
}

TEST(Portable, InstructionsOfX86AreBehindConditions) {
  std::string violations;
  for (const auto& [path, text] :
       read_sources({"trainer", "bindings", "host"}, {".h", ".cpp", ".cu", ".cuh"}))
    for (const int line : unguarded_lines(text)) violations += path + ":" + std::to_string(line) + "\n";
  EXPECT_EQ(violations, "") << "put these lines between #if defined(__x86_64__) and #endif";
}

TEST(Portable, FindsLinesOutsideOfConditions) {
  EXPECT_EQ(unguarded_lines("#include <immintrin.h>\n"), std::vector<int>{1});
  EXPECT_EQ(unguarded_lines("#if defined(__x86_64__)\n#include <cpuid.h>\n#endif\n"), std::vector<int>{});
  EXPECT_EQ(
      unguarded_lines(
          "#if defined(__AVX2__)\n#ifdef A\n#endif\n#else\n__builtin_cpu_supports(\"avx2\");\n#endif\n"),
      std::vector<int>{5});
}

}  // namespace
}  // namespace tycho::house
