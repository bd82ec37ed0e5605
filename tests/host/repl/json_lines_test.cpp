// `tycho repl --json`: what a program sends, line by line, and what it gets, over an engine that computes
// nothing.
#include <vector>

#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

class JsonLinesTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    install(TYCHO_FAKE_ENGINE);
    write(whole());
  }
  /// What a shell line that writes requests is answered, after the greeting.
  std::vector<Json> answers(const std::string& requests, const std::string& words = "x.lua") {
    const Outcome got =
        here("unset -f tycho; { " + requests + "; } | timeout 60 bin/tycho repl --json " + words);
    EXPECT_EQ(got.code, 0) << got.output;
    std::vector<Json> lines;
    std::istringstream in(got.output);
    for (std::string line; std::getline(in, line);) lines.push_back(parse_json(line, "an answer"));
    return lines;
  }
  std::vector<Json> to(const std::vector<Json>& requests) {
    std::string text;
    for (const Json& request : requests)
      text += (request.is_string() ? request.get<std::string>() : request.dump()) + "\n";
    write(text, "requests");
    std::vector<Json> lines = answers("cat requests");
    EXPECT_TRUE(lines.at(0).contains("ready")) << lines.at(0);
    lines.erase(lines.begin());
    return lines;
  }
};

TEST_F(JsonLinesTest, AnEntryGivesItsOutputItsValueAndItsEnd) {
  EXPECT_EQ(to({{{"id", 1}, {"entry", "1 + 2"}},
                {{"id", "two"}, {"entry", "print('a') print('b')"}},
                {{"entry", "x = 5"}},
                {{"id", 4}, {"entry", "x, nil, 'a\\nb'"}},
                {{"id", 5}, {"entry", "x;"}},
                {{"id", 6}, {"entry", "for i = 1, 2 do"}},
                {{"id", 7}, {"entry", "for i = 1, 2 do\nprint(i)\nend"}}}),
            (std::vector<Json>{{{"id", 1}, {"value", "3"}},
                               {{"id", 1}, {"done", "ok"}},
                               {{"id", "two"}, {"output", "a\n"}},
                               {{"id", "two"}, {"output", "b\n"}},
                               {{"id", "two"}, {"done", "ok"}},
                               {{"done", "ok"}},
                               {{"id", 4}, {"value", "5\nnil\na\nb"}},
                               {{"id", 4}, {"done", "ok"}},
                               {{"id", 5}, {"done", "ok"}},
                               {{"id", 6}, {"done", "incomplete"}},
                               {{"id", 7}, {"output", "1\n"}},
                               {{"id", 7}, {"output", "2\n"}},
                               {{"id", 7}, {"done", "ok"}}}));
}

TEST_F(JsonLinesTest, AnErrorHasItsPlaceAndTheNextEntryRuns) {
  const std::vector<Json> got = to({{{"id", 1}, {"entry", "r.optimizer.betaz = 1"}},
                                    {{"id", 2}, {"entry", "error('broken')"}},
                                    {{"id", 3}, {"entry", "x = = 1"}},
                                    {{"id", 4}, {"entry", ":wyh seed"}},
                                    {{"id", 5}, {"entry", "r.seed"}}});
  ASSERT_EQ(got.size(), 11U);
  const Json first = got[0].at("error");
  EXPECT_CONTAINS(first.at("message").get<std::string>(), "unknown key  optimizer.betaz");
  EXPECT_EQ(first.at("file"), "stdin");
  EXPECT_EQ(first.at("line"), 1);
  EXPECT_EQ(first.at("column"), 13);
  EXPECT_EQ(first.at("exit"), 10);
  EXPECT_EQ(got[1], (Json{{"id", 1}, {"done", "error"}}));
  EXPECT_CONTAINS(got[2].at("error").at("message").get<std::string>(), "broken");
  EXPECT_EQ(got[2].at("error").at("line"), 2);
  EXPECT_CONTAINS(got[4].at("error").at("message").get<std::string>(), "not Lua");
  EXPECT_EQ(got[7].at("error"), (Json{{"message", "no command :wyh; did you mean :why?"}, {"exit", 2}}));
  EXPECT_EQ(got[9], (Json{{"id", 5}, {"value", "17"}}));
}

TEST_F(JsonLinesTest, AnInvalidRequestIsAnErrorAndTheNextOneIsAnswered) {
  const std::vector<Json> got = to({"nonsense",
                                    "[1]",
                                    "",
                                    "\xff",
                                    {{"id", 1}},
                                    {{"id", 2}, {"entry", 5}},
                                    {{"id", 3}, {"entry", "1"}, {"complete", "r"}},
                                    {{"id", 4}, {"entry", "4"}}});
  ASSERT_EQ(got.size(), 14U);
  for (size_t i = 0; i < 12; i += 2) {
    EXPECT_CONTAINS(got[i].at("error").at("message").get<std::string>(),
                    "expected {\"id\": 1, \"entry\": \"1 + 2\"}");
    EXPECT_EQ(got[i + 1].at("done"), "error");
    EXPECT_EQ(got[i].contains("id"), i >= 6);
  }
  EXPECT_EQ(got[12], (Json{{"id", 4}, {"value", "4"}}));
}

TEST_F(JsonLinesTest, CompletesAndRunsCommandsAndTheShell) {
  const std::vector<Json> got = to({{{"id", 1}, {"complete", "r.optim"}},
                                    {{"id", 2}, {"entry", ";echo from; cat; exit 3"}},
                                    {{"id", 3}, {"entry", "build(r); trainer:step(4)"}},
                                    {{"id", 4}, {"entry", "cmd.set_lr(1e-4); trainer:step()"}},
                                    {{"id", 5}, {"entry", ":quit"}},
                                    {{"id", 6}, {"entry", "1"}}});
  EXPECT_EQ(got.at(0), (Json{{"id", 1}, {"words", {"r.optimizer"}}, {"hint", ""}}));
  EXPECT_EQ(got.at(2), (Json{{"id", 2}, {"output", "from\n"}}));
  EXPECT_EQ(got.at(3), (Json{{"id", 2}, {"output", "[exit 3]\n"}}));
  ASSERT_TRUE(got.at(5).contains("value")) << Json(got).dump(1);
  EXPECT_CONTAINS(got.at(5).at("value").get<std::string>(), "  4/10 ba  loss 1.000 ");
  EXPECT_EQ(got.back(), (Json{{"id", 5}, {"done", "quit"}}));
}

TEST_F(JsonLinesTest, AnInterruptEndsTheEntryThatRuns) {
  const std::vector<Json> got = answers(
      "echo '{\"interrupt\": true}'; echo '{\"id\": 1, \"entry\": \"print(1) while true do end\"}'; "
      "for i in $(seq 1200); do grep -qs output said && break; sleep 0.05; done; "
      "echo '{\"interrupt\": true}'; echo '{\"id\": 2, \"entry\": \"2\"}'",
      "x.lua >said; code=$?; cat said; exit $code");
  ASSERT_EQ(got.size(), 6U);
  EXPECT_EQ(got[1], (Json{{"id", 1}, {"output", "1\n"}}));
  EXPECT_EQ(got[2].at("error"), (Json{{"message", "interrupted at stdin:1"}, {"exit", 130}}));
  EXPECT_EQ(got[4], (Json{{"id", 2}, {"value", "2"}}));
}

TEST_F(JsonLinesTest, ABrokenRecipeIsSaidAndCanBeLookedAt) {
  const std::vector<Json> got = answers("echo '{\"id\": 1, \"entry\": \"1\"}'", "x.lua sed=3");
  EXPECT_CONTAINS(got.at(0).at("error").at("message").get<std::string>(), "unknown key  sed");
  EXPECT_TRUE(got.at(1).contains("ready"));
  EXPECT_EQ(got.at(2), (Json{{"id", 1}, {"value", "1"}}));
  const Outcome both = here("tycho repl x.lua --json -e 1");
  EXPECT_EQ(both.code, 2);
  EXPECT_CONTAINS(both.output, "--json reads entries from standard input");
}

}  // namespace
}  // namespace tycho
