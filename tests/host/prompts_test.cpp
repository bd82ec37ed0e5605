// Files of prompts: lines, objects, and lines that are neither.
#include "tests/host/shell.h"

namespace tycho {
namespace {

class PromptsTest : public ShellTest {
 protected:
  Outcome generate(const std::string& text, const std::string& name) {
    write(text, name);
    return here("tycho generate x --prompts " + name);
  }
};

TEST_F(PromptsTest, ABrokenLineIsNamed) {
  const Outcome broken = generate("{\"prompt\": \"a\"}\n{\"prompt\": }\n", "p.jsonl");
  EXPECT_EQ(broken.code, 12);
  EXPECT_CONTAINS(broken.output, "[p.jsonl:2]");
}

TEST_F(PromptsTest, AnObjectWithoutAPromptIsNamed) {
  for (const char* line : {"{\"text\": \"a\"}", "{\"prompt\": 3}", "[\"prompt\"]"}) {
    const Outcome outcome = generate(std::string("\n") + line, "p.jsonl");
    EXPECT_EQ(outcome.code, 12);
    EXPECT_CONTAINS(outcome.output, "[p.jsonl:2] expected an object with a text called \"prompt\"");
  }
}

TEST_F(PromptsTest, AFileWithoutAPromptIsRefused) {
  EXPECT_EQ(generate("\n\n", "p.txt").code, 12);
  EXPECT_EQ(here("tycho generate x --prompts nowhere.txt").code, 12);
}

}  // namespace
}  // namespace tycho
