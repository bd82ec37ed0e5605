// Every Lua example of the pages about recipes passes `tycho check`. Their commands are run by
// docs_commands.sh.
#include <vector>

#include "tests/host/shell.h"

namespace tycho {
namespace {

using DocsExamplesTest = ShellTest;

/// The ```lua blocks of a page, in order.
std::vector<std::string> lua_blocks(const std::string& page) {
  std::ifstream file(page);
  std::vector<std::string> blocks;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "```lua") {
      blocks.emplace_back();
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

TEST_F(DocsExamplesTest, WholeFilesAndPartsOfRecipesPass) {
  int num_examples = 0;
  for (const char* page : {"recipes.md", "overrides.md", "callbacks.md", "components.md", "evaluation.md",
                           "maths.md", "profiling.md"}) {
    for (const std::string& block : lua_blocks(std::string(TYCHO_SOURCE_DIR "/docs/") + page)) {
      const bool is_file = block.starts_with("-- ");  // "-- small.lua": a file that later ones may require
      const std::string name = is_file ? block.substr(3, block.find('\n') - 3) : "x.lua";
      write(is_file ? block : whole(block), name);
      if (is_file && !block.ends_with("return r\n")) continue;  // a module: recipes below require it
      const Outcome checked = here("tycho check " + name);
      EXPECT_EQ(checked.code, 0) << block << checked.output;
      ++num_examples;
    }
  }
  EXPECT_GE(num_examples, 4);
}

TEST_F(DocsExamplesTest, SweepsAndChecksOfTheirPageWork) {
  int num_examples = 0;
  for (const std::string& block : lua_blocks(TYCHO_SOURCE_DIR "/docs/sweeps.md")) {
    const std::string name = block.substr(3, block.find('\n') - 3);
    std::filesystem::create_directories((folder_ / name).parent_path());
    write(block, name);
    const bool is_check = name.starts_with("doctor/");
    const std::string place = is_check ? folder_.string() : TYCHO_SOURCE_DIR;
    const std::string verb = is_check ? "doctor" : "sweep plan " + (folder_ / name).string();
    const Outcome outcome = shell("cd " + place + " && tycho " + verb);
    if (is_check) {
      EXPECT_CONTAINS(outcome.output, "scratch       enough room in /tmp");
    } else {
      EXPECT_EQ(outcome.code, 0) << block << outcome.output;
    }
    ++num_examples;
  }
  EXPECT_EQ(num_examples, 2);
}

}  // namespace
}  // namespace tycho
