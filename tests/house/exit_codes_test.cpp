// Exit codes: docs/troubleshooting.md has the one table, with the codes that the program knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/house/source_tree.h"
#include "trainer/base/process/stop_signals.h"

namespace tycho::house {
namespace {

constexpr const char* kPage = "docs/troubleshooting.md";

std::vector<int> numbers_in(const std::string& text) {
  static const std::regex kNumber("[0-9]+");
  std::vector<int> numbers;
  for (std::sregex_iterator it(text.begin(), text.end(), kNumber), end; it != end; ++it)
    numbers.push_back(std::stoi(it->str()));
  return numbers;
}

/// Returns the values of `enum class ExitCode`, sorted.
std::vector<int> codes_of_enum(const std::string& header) {
  static const std::regex kValue("\\bk[A-Za-z]+ = ([0-9]+),");
  const size_t begin = header.find("enum class ExitCode"), end = header.find("};", begin);
  std::vector<int> codes;
  for (std::sregex_iterator it(header.begin() + static_cast<std::ptrdiff_t>(begin),
                               header.begin() + static_cast<std::ptrdiff_t>(end), kValue),
       last;
       it != last; ++it)
    codes.push_back(std::stoi(it->str(1)));
  std::sort(codes.begin(), codes.end());
  return codes;
}

/// Returns the numbers in the first column of tables whose head is `| code | what it means |`, sorted.
std::vector<int> codes_of_table(const std::string& page) {
  std::vector<int> codes;
  bool is_inside = false;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) is_inside = false;
    if (is_inside)
      for (const int code : numbers_in(line.substr(1, line.find('|', 1) - 1))) codes.push_back(code);
    is_inside = is_inside || line.starts_with("| code | what it means |");
  }
  std::sort(codes.begin(), codes.end());
  return codes;
}

/// Returns "page: text" for each "exit code N" and "exit codes N, M or K" whose numbers `known` lacks.
std::vector<std::string> unknown_codes(const Sources& pages, const std::vector<int>& known) {
  static const std::regex kNamed("exit codes? ([0-9]+(?:(?:, | or | and )[0-9]+)*)");
  std::vector<std::string> findings;
  for (const auto& [path, text] : pages)
    for (std::sregex_iterator it(text.begin(), text.end(), kNamed), end; it != end; ++it)
      for (const int code : numbers_in(it->str(1)))
        if (std::find(known.begin(), known.end(), code) == known.end())
          findings.push_back(path + ": " + it->str());
  return findings;
}

std::string text_of(const std::string& path) { return read_text(std::string(TYCHO_SOURCE_DIR "/") + path); }

Sources all_pages() {
  Sources pages = read_sources({"docs", "containers"}, {".md"});
  pages["README.md"] = text_of("README.md");
  return pages;
}

TEST(ExitCodes, TheTableHasThoseOfTheProgram) {
  const std::vector<int> codes = codes_of_enum(text_of("trainer/base/error.h"));
  EXPECT_GT(codes.size(), 10u);
  EXPECT_EQ(codes_of_table(text_of(kPage)), codes);
}

TEST(ExitCodes, EveryStopSignalHasOne) {
  const std::vector<int> codes = codes_of_enum(text_of("trainer/base/error.h"));
  for (const int signal : kStopSignals)
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 128 + signal), 1) << "signal " << signal;
}

TEST(ExitCodes, PagesNameOnlyThoseOfTheTableAndHaveNoOther) {
  const Sources pages = all_pages();
  EXPECT_EQ(unknown_codes(pages, codes_of_enum(text_of("trainer/base/error.h"))), std::vector<std::string>());
  for (const auto& [path, text] : pages) {
    if (path == kPage) continue;
    EXPECT_EQ(codes_of_table(text), std::vector<int>()) << path << " repeats the table of " << kPage;
    EXPECT_EQ(text.find("\n## Exit codes"), std::string::npos)
        << path << ": link to " << kPage << "#exit-codes";
  }
}

TEST(ExitCodes, RulesFindAnOffender) {
  EXPECT_EQ(codes_of_enum("enum class ExitCode : int {\n  kOk = 0,\n  kB = 12,  // x = 3\n};\nkC = 4,"),
            (std::vector<int>{0, 12}));
  EXPECT_EQ(
      codes_of_table("| code | what it means | look at |\n|---|---|---|\n| 2, 11 | 7 | 8 |\n\n| 5 | x |\n"),
      (std::vector<int>{2, 11}));
  EXPECT_EQ(unknown_codes({{"a.md", "with exit code 11, or exit codes 3, 12 or 7"}}, {11, 12}),
            (std::vector<std::string>{"a.md: exit codes 3, 12 or 7", "a.md: exit codes 3, 12 or 7"}));
}

}  // namespace
}  // namespace tycho::house
