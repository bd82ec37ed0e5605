// Doc comments say what they are about: none opens with a word that leaves the subject out.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

/// Returns "file:line: text" for each `///` block whose first words leave out the subject.
std::vector<std::string> headless_blocks(const Sources& sources) {
  static const std::regex kBlock("\\s*///(?!<)\\s*(.*)");
  static const std::regex kHeadless(
      "(Of|The same|Those|As|What|Its|Their|Whether|Where|From)(?![A-Za-z0-9_]).*");
  std::vector<std::string> findings;
  for (const auto& [path, text] : sources) {
    std::istringstream lines(text);
    int number = 0;
    bool is_inside = false;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      std::smatch block;
      const bool is_doc = line.find("///") != line.npos && std::regex_match(line, block, kBlock);
      if (is_doc && !is_inside && std::regex_match(block.str(1), kHeadless))
        findings.push_back(path + ":" + std::to_string(number) + ": " + block.str(1));
      is_inside = is_doc;
    }
  }
  return findings;
}

TEST(DocComments, OpenWithASubject) {
  const std::vector<std::string> findings =
      headless_blocks(read_sources({"bindings", "host", "trainer"}, {".h", ".cpp", ".cu", ".cuh"}));
  std::string list;
  for (const std::string& finding : findings) list += finding + "\n";
  EXPECT_EQ(findings.size(), 0u)
      << "begin these with what they are about (\"Returns ...\", \"Number of ...\", see CONTRIBUTING.md):\n"
      << list;
}

TEST(DocComments, RuleFindsAnOffender) {
  const Sources sources = {
      {"a.h",
       "/// Returns the size.\n/// Of nothing else.\nint size();\n  /// Whether it is open.\nbool open;\n"
       "/// The same of texts.\nint y;\n///< What it is.\n/// Ofset.\n// From a plain comment.\n"}};
  EXPECT_EQ(headless_blocks(sources),
            (std::vector<std::string>{"a.h:4: Whether it is open.", "a.h:6: The same of texts."}));
}

}  // namespace
}  // namespace tycho::house
