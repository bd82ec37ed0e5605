// `tycho repl` on several processes: entries run in step, and nobody waits for a rank that does not come.
#include "tests/ranks/ranks_fixture.h"

namespace tycho {
namespace {

class PromptRanksTest : public RanksTest {
 protected:
  /// A script over x.lua on so many ranks.
  Outcome script(const std::string& text, int ranks = 2, const std::string& words = "") const {
    write(text, "script");
    return here("unset -f tycho; timeout 120 " TYCHO_PROGRAM " launch -n " + std::to_string(ranks) +
                " repl x.lua " + words + " < script");
  }
};

TEST_F(PromptRanksTest, TrainsWhatARunOfAsManyRanksDoes) {
  ASSERT_EQ(run(2, "whole").code, 0);
  const Outcome got = script(
      "build(r);\ntrainer:step(8).step\ntrainer:save();\ntrainer:step(8);\nckpt:load(8);\n"
      "trainer:run '16ba';\ntrainer:save();\ntrainer.state.step\n",
      2, "run_dir=parts");
  ASSERT_EQ(got.code, 0) << got.output;
  EXPECT_CONTAINS(got.output, "resumed from step 8");
  EXPECT_CONTAINS(got.output, "24\n");
  EXPECT_EQ(got.output.find("rank 1"), std::string::npos) << got.output;
  EXPECT_EQ(numbers("whole", "loss"), numbers("parts", "loss"));
  EXPECT_EQ(final_weights("whole"), final_weights("parts"));
  ASSERT_EQ(events("whole", "eval").size(), 2U);
  EXPECT_EQ(events("whole", "eval").back().at("facts").at("loss"),
            events("parts", "eval").back().at("facts").at("loss"));
}

TEST_F(PromptRanksTest, ValuesThatDifferAreMarkedAndOneRankCanBeAsked) {
  const Outcome two = script("@1 y = 2\n@0 y = 1\ny\n@1 print('here')\n@1 y\n{ 1, 2 }\n@1 :who\ny;\n");
  EXPECT_EQ(two.output, "1\n≠ rank 1: 2\nhere\n2\n{ 1, 2 }\n  y                number    2\n");
  EXPECT_EQ(two.code, 0);
  EXPECT_CONTAINS(script("@0 y = 1\n@1 y = 1\ny\n", 3).output, "1\nrank 2: stdin:3:1: undeclared name  y");
  EXPECT_CONTAINS(script("@2 1\n").output, "@ needs a rank from 0 to 1");
  EXPECT_CONTAINS(script("@ 1\n").output, "@ needs a rank from 0 to 1");
}

TEST_F(PromptRanksTest, WhatAnotherRankPrintsComesWholeOrIsCutWithAMark) {
  const std::string lines = "@1 for i = 1, 40000 do print(i) end\n@1 for i = 1, 1000000 do print(i) end\n";
  const Outcome got = script(lines + "1 + 1\n");
  EXPECT_EQ(got.code, 0) << got.output.substr(0, 2000);
  const size_t second = got.output.find("\n1\n");
  ASSERT_NE(second, std::string::npos);
  std::string whole;
  for (int i = 1; i <= 40000; ++i) whole += std::to_string(i) + "\n";
  EXPECT_EQ(got.output.substr(0, second + 1), whole);
  const size_t mark = got.output.find("... ", second);
  ASSERT_NE(mark, std::string::npos);
  // The last line before the mark is the number that follows those before it, whole.
  const std::string shown = got.output.substr(second + 1, mark - second - 1);
  const auto count = std::count(shown.begin(), shown.end(), '\n');
  EXPECT_TRUE(shown.ends_with("\n" + std::to_string(count) + "\n"));
  int64_t all_bytes = 0;
  for (int i = 1; i <= 1000000; ++i) all_bytes += static_cast<int64_t>(std::to_string(i).size()) + 1;
  EXPECT_TRUE(got.output.ends_with(
      fmt::format("... {} more bytes are not shown\n2\n", all_bytes - static_cast<int64_t>(shown.size()))))
      << got.output.substr(mark);
}

TEST_F(PromptRanksTest, WhatFailsOnOneRankEndsOnAllAndIsNamed) {
  const std::string beside = "@0 y = 1\n@1 y = 2\n";
  Outcome got = script(beside + "if y == 2 then error('only here') end\nprint 'not reached'\n");
  EXPECT_CONTAINS(got.output, "rank 1: stdin:3: only here");
  EXPECT_EQ(got.output.find("not reached"), std::string::npos);
  EXPECT_EQ(got.code, 10);
  got = script(beside + "build(r);\nif y == 2 then error('only here') end trainer:step(3)\n");
  EXPECT_CONTAINS(got.output, "trainer:step(3) needs all ranks, but rank 1 has failed in this entry");
  EXPECT_CONTAINS(got.output, "rank 1: stdin:4: only here");
  EXPECT_EQ(got.code, 10);
  got = script(beside + "build(r);\nif y == 1 then error('only here') end trainer:save()\n");
  EXPECT_CONTAINS(got.output, "stdin:4: only here");
  EXPECT_EQ(got.output.find("rank 1"), std::string::npos) << got.output;
  EXPECT_EQ(got.code, 10);
}

TEST_F(PromptRanksTest, CallsThatDifferAreRefusedAndTheRunContinues) {
  const Outcome got = script(
      "@0 y = 1\n@1 y = 2\nbuild(r);\npcall(trainer.step, trainer, y);\n"
      "local ok, e = pcall(function() if y == 1 then trainer:step() end end);\n@0 tostring(e)\n"
      "local ok, e = pcall(function() if y == 2 then cmd.set_lr(1e-3) end trainer:step() end);\n"
      "@0 tostring(e)\ntrainer.state.step\ntrainer:close()\nbuild(r);\ntrainer:step(2).n\n");
  EXPECT_CONTAINS(got.output, "trainer:step(1) needs all ranks, but rank 1 has ended this entry");
  EXPECT_CONTAINS(got.output,
                  "rank 0 calls trainer:step(1), rank 1 calls trainer:step(1) after set_lr(0.001)");
  EXPECT_CONTAINS(got.output, "\n0\n2\n");
  EXPECT_EQ(got.code, 0) << got.output;
}

TEST_F(PromptRanksTest, OneRankAloneDoesNotCallTheOthers) {
  std::string lines = "build(r);\n";
  const std::vector<std::string> calls = {"trainer:step()",     "trainer:run '2ba'", "trainer:eval()",
                                          "trainer:save()",     "trainer:close()",   "cmd.set_lr(1)",
                                          "ckpt:load 'latest'", "build(r)"};
  for (const std::string& call : calls) {
    if (call == "build(r)") lines += "trainer:close()\n";
    if (call == "ckpt:load 'latest'") lines += "trainer:save();\n";
    lines += "@1 local ok, e = pcall(function() " + call + " end); tostring(e)\n";
  }
  const Outcome got = script(lines + "build(r);\n@1 model:find('embed').shape[1]\n");
  size_t at = 0;
  for (const std::string& call : calls) {
    at = got.output.find("needs all ranks, but only rank 1 runs this entry", at + 1);
    EXPECT_NE(at, std::string::npos) << call << "\n" << got.output;
  }
  EXPECT_CONTAINS(got.output, "\n300\n");
  EXPECT_EQ(got.code, 0) << got.output;
}

TEST_F(PromptRanksTest, RanksRepeatABenchAsOftenAsRank0) {
  const Outcome got =
      script("build(r);\n:bench trainer:step(1)\ntrainer.state.step > 1\n@1 :bench 1 + 1\n@0 :bench 1 + 1\n");
  EXPECT_CONTAINS(got.output, " times: mean ");
  EXPECT_CONTAINS(got.output, "\ntrue\n");
  EXPECT_EQ(got.output.find("≠"), std::string::npos) << got.output;
  EXPECT_EQ(got.code, 0) << got.output;
}

TEST_F(PromptRanksTest, ACallbackThatFailsLeavesTheRunOpen) {
  write(
      recipe("r.callbacks.odd = t.everywhere { batch_end = function(ctx)\n"
             "  if ctx.step == 3 and ctx.dist.rank == 1 then error(\"only here\") end\nend }\n"));
  const Outcome got = script(
      "build(r);\nlocal ok, e = pcall(trainer.step, trainer, 5); tostring(e)\ntrainer:step(2);\n"
      "trainer:save();\ntrainer.state.step\n");
  EXPECT_CONTAINS(got.output, "[callback] rank 1, batch_end of");
  EXPECT_CONTAINS(got.output, "\n5\n");
  EXPECT_EQ(got.code, 0) << got.output;
}

TEST_F(PromptRanksTest, WhatIsWrongIsSaidOnce) {
  const auto once = [](const Outcome& got, const std::string& text) {
    EXPECT_CONTAINS(got.output, text);
    EXPECT_EQ(got.output.find(text), got.output.rfind(text)) << got.output;
    return got.code;
  };
  EXPECT_EQ(once(script("1\n", 2, "sed=1"), "unknown key"), 10);
  EXPECT_EQ(once(script("r.global_batch = '9sp'\nbuild(r)\n"), "cannot be divided evenly among 2 ranks"), 11);
  EXPECT_EQ(once(script("trainer:step()\n"), "there is no trainer yet"), 10);
  EXPECT_EQ(once(script("@1 r.seed = 5\nbuild(r)\n"), "rank 1 has a different configuration"), 11);
}

TEST_F(PromptRanksTest, FilesAndTheShellAreRankZeros) {
  const Outcome got = script("x = 1\n;echo once >> said\n:save saved.lua\n:log entries.lua\nx\n");
  EXPECT_EQ(got.code, 0) << got.output;
  EXPECT_EQ(text("said"), "once\n");
  EXPECT_EQ(text("entries.lua"), "x = 1\n");
}

TEST_F(PromptRanksTest, LinesOfJsonAreRankZeros) {
  write("{\"id\":1,\"entry\":\"@1 y = 1\"}\n{\"id\":2,\"entry\":\"@1 y\"}\n{\"id\":3,\"entry\":\"y\"}\n",
        "requests");
  const Outcome got =
      here("unset -f tycho; timeout 120 " TYCHO_PROGRAM " launch -n 2 repl x.lua --json < requests");
  EXPECT_CONTAINS(got.output, "{\"id\":2,\"output\":\"1\\n\"}\n{\"id\":2,\"done\":\"ok\"}\n");
  EXPECT_CONTAINS(got.output, "undeclared name  y");
  EXPECT_CONTAINS(got.output, "{\"id\":3,\"done\":\"error\"}\n");
  EXPECT_EQ(got.code, 0) << got.output;
}

// Rank 0 reads from a pipe that stays open: as a person who thinks.
TEST_F(PromptRanksTest, ARankEndsWhenRankZeroIsGone) {
  for (const char* entry : {"x = 1", "@1 while true do end"}) {
    const Outcome outcome =
        here("rm -f pipe; mkfifo pipe; " +
             by_hand("x.lua < pipe", "x.lua < /dev/null",
                     "exec 9>pipe; echo 'print(\"ready\")' >&9; "
                     "for i in $(seq 2400); do grep -q ready rank_0.log && break; sleep 0.05; done; echo '" +
                         std::string(entry) + "' >&9; sleep 1; kill -9 $rank_0",
                     "repl"));
    EXPECT_CONTAINS(outcome.output, "codes 137 143") << text("rank_1.log");
    EXPECT_CONTAINS(text("rank_1.log"), "[parallel] rank 0 (");
    EXPECT_EQ(text("rank_1.log").find("Exception raised"), std::string::npos) << text("rank_1.log");
  }
}

TEST_F(PromptRanksTest, ASignalEndsTheWaitForTheOtherRanks) {
  const auto alone = [&](const std::string& rank, const std::string& signal, const std::string& verb) {
    return here("rm -f alone.log; port=$((20000 + $$ % 10000)); " +
                in_background(
                    "env TYCHO_NUM_RANKS=2 TYCHO_NUM_LOCAL_RANKS=2 TYCHO_ADDRESS=127.0.0.1 TYCHO_PORT=$port "
                    "TYCHO_TOKEN=0123456789abcdef TYCHO_RANK=" +
                        rank + " TYCHO_LOCAL_RANK=" + rank + " " TYCHO_PROGRAM " " + verb,
                    "alone") +
                "for i in $(seq 1200); do grep -q 'wait' alone.log && break; sleep 0.05; done; kill -" +
                signal + " $alone; wait $alone; echo code $?; cat alone.log");
  };
  for (const auto& [signal, code] : {std::pair{"TERM", "143"}, {"INT", "130"}, {"USR1", "138"}}) {
    const Outcome ended = alone("0", signal, "repl x.lua");
    EXPECT_CONTAINS(ended.output, std::string("code ") + code + "\n");
    EXPECT_CONTAINS(ended.output,
                    std::string("[ranks] stopped by SIG") + signal + " while rank 0 was waiting for rank 1");
  }
  for (const char* verb : {"repl x.lua", "run x.lua --on-error repl"}) {
    const Outcome ended = alone("1", "TERM", verb);
    EXPECT_CONTAINS(ended.output, "code 143\n");
    EXPECT_CONTAINS(ended.output,
                    "[ranks] stopped by SIGTERM while rank 1 was waiting for rank 0 at 127.0.0.1");
  }
}

TEST_F(PromptRanksTest, AScriptEndsWhenARankIsGone) {
  const Outcome outcome =
      here("mkfifo pipe; " +
           by_hand("x.lua < pipe", "x.lua < /dev/null",
                   "exec 9>pipe; echo 'print(\"ready\")' >&9; "
                   "for i in $(seq 2400); do grep -q ready rank_0.log && break; sleep 0.05; done; "
                   "kill -9 $rank_1; sleep 0.2; echo 'print(\"not reached\")' >&9",
                   "repl"));
  EXPECT_CONTAINS(outcome.output, "codes 143 137") << text("rank_0.log");
  EXPECT_CONTAINS(text("rank_0.log"), "[parallel] rank 1 (");
}

}  // namespace
}  // namespace tycho
