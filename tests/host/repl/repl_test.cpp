// `tycho repl` without a terminal: scripts and single entries, over an engine that computes nothing.
#include <filesystem>

#include "tests/host/shell.h"

namespace tycho {
namespace {

class ReplTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    install(TYCHO_FAKE_ENGINE);
    write(whole());
  }
  /// A script over x.lua, with what follows the file on the command line.
  Outcome script(const std::string& text, const std::string& words = "") {
    write(text, "script");
    return here("unset -f tycho; XDG_STATE_HOME=state bin/tycho repl x.lua " + words + " < script");
  }
};

TEST_F(ReplTest, ExpressionsPrintAndStatementsDoNot) {
  const Outcome got =
      script("1 + 2\nx = 5\nx * 2;\n_\nlocal y = x + 1\ny, nil\n= y\nfor i = 1, 2 do\nprint(i)\nend\n");
  EXPECT_EQ(got.output, "3\n10\n6\nnil\n6\n1\n2\n");
  EXPECT_EQ(got.code, 0);
}

TEST_F(ReplTest, ARecipeIsReadChangedAndExplained) {
  const Outcome got = script(
      "r.optimizer.lr\nr.optimizer.lr = 2e-3\nr.optimizer\n?r.optimizer.lr\n:why optimizer.lr\nr:why "
      "'seed'\n",
      "optimizer.lr*=2");
  EXPECT_CONTAINS(got.output, "0.002\nadamw { lr = 0.002, betas = {0.9, 0.95}");
  EXPECT_CONTAINS(got.output, "-- x.lua:5");
  EXPECT_CONTAINS(got.output, "optimizer.lr : number > 0, required.  Peak learning rate");
  EXPECT_CONTAINS(got.output, "set: stdin:2");
  EXPECT_CONTAINS(got.output, "recipe     0.001");
  EXPECT_CONTAINS(got.output, "argument   0.002");
  EXPECT_EQ(got.code, 0);
}

TEST_F(ReplTest, WordsOfOtherPromptsLeaveIt) {
  for (const char* word : {"exit", "quit", "exit()", "quit();", "logout"}) {
    const Outcome got = script(std::string(word) + "\nprint 'not reached'\n");
    EXPECT_EQ(got.output, "") << word;
    EXPECT_EQ(got.code, 0) << word;
  }
  EXPECT_EQ(script("exit = 3\nexit\n").output, "3\n") << "a name of one's own";
}

TEST_F(ReplTest, ANoteSaysThatChangesAfterBuildWaitForTheNextBuild) {
  const std::string note =
      "note: the open run keeps the recipe that it was built from; trainer:close(), then build(r)";
  const Outcome got = script(
      "r.seed = 3\nprint 'before'\ntrainer = build(r)\nprint 'built'\nr.optimizer.lr = 2e-3\nprint 'set'\n"
      "r.optimizer.lr\ntrainer:close()\nr.optimizer.lr = 3e-3\ntrainer = build(r)\nprint 'again'\n"
      "r:set('seed', 4)\n");
  EXPECT_EQ(got.code, 0) << got.output;
  const size_t built = got.output.find("built\n"), first = got.output.find(note),
               set = got.output.find("set\n"), again = got.output.find("again\n"),
               second = got.output.find(note, first + 1);
  EXPECT_LT(built, first);
  EXPECT_LT(first, set) << got.output;
  EXPECT_LT(again, second);
  EXPECT_NE(second, std::string::npos) << got.output;
  EXPECT_EQ(got.output.find(note, second + 1), std::string::npos) << got.output;
}

TEST_F(ReplTest, AWrongKeyIsMarkedInTheTypedLineAndEndsAScript) {
  const Outcome got = script("x = 1\nr.optimizer.betaz = 1\nprint 'not reached'\n");
  EXPECT_CONTAINS(got.output, "stdin:2:13: unknown key  optimizer.betaz (adamw)\n");
  EXPECT_CONTAINS(got.output, "   2 | r.optimizer.betaz = 1\n     |             ^^^^^ did you mean  betas");
  EXPECT_EQ(got.output.find("not reached"), std::string::npos);
  EXPECT_EQ(got.code, 10);
}

TEST_F(ReplTest, ARunIsBuiltSteppedAndClosed) {
  const Outcome got = script(
      "trainer = build(r)\ns = trainer:step(4)\ns\nmodel:find 'embed'\n"
      "for name, p in model.params do if p.grad:norm() > 20 then print(name) end end\n"
      "model:generate('once', { max_tokens = 3 })\nopt.lr\nplot(s.losses)\nhist { 1, 2, 2, 3 "
      "}\ntrainer:close()\n");
  EXPECT_CONTAINS(got.output, "  4/10 ba  loss 1.000 ");
  EXPECT_CONTAINS(got.output, "f32[8");
  EXPECT_CONTAINS(got.output, "embed.weight\n\"once and 3 more\"\n0.0006\n");
  EXPECT_EQ(got.code, 0) << got.output;
}

TEST_F(ReplTest, ErrorsOfObjectsSayWhatToDo) {
  Outcome got = script("build(r);\nmodel:layer(99)\n");
  EXPECT_CONTAINS(got.output, "stdin:2:7: E_SHAPE  model:layer(99): this model has layers 1..2\n");
  EXPECT_CONTAINS(got.output, "   2 | model:layer(99)\n     |       ^^^^^");
  EXPECT_EQ(got.code, 2);
  got = script("build(r);\nopt:set_lr(3e-4)\n");
  EXPECT_CONTAINS(got.output, "opt:set_lr: opt is read-only");
  EXPECT_CONTAINS(got.output, "use cmd.set_lr(3e-4)");
  got = script("build(r);\nopt.lr = 3e-4\n");
  EXPECT_CONTAINS(got.output, "opt is read-only: lr cannot be set");
  EXPECT_CONTAINS(got.output, "use cmd.set_lr(3e-4)");
  got = script("trainer:step()\n");
  EXPECT_CONTAINS(got.output, "there is no trainer yet");
  EXPECT_CONTAINS(got.output, "trainer = build(r)  opens the run");
  got = script("build(r);\ntrainer:close()\nmodel.n_params\n");
  EXPECT_CONTAINS(got.output, "E_EXPIRED  this model belonged to the run fake, which has ended");
}

TEST_F(ReplTest, CommandsAreQueuedAndAPinnedRateIsSaid) {
  Outcome got = script(
      "build(r);\ncmd.set_lr(2e-4)\ncmd.set_schedule(t.sched.linear { alpha_f = 0.5 })\ntrainer:step(2)\n"
      "cmd.set_lr(nil)\ntrainer:step(1)\n?cmd.set_lr\n");
  EXPECT_CONTAINS(got.output, "lr 2e-4 (schedule: 1e-3; pinned by repl, cmd.set_lr(nil) releases)");
  EXPECT_CONTAINS(got.output, "Pins the learning rate");
  EXPECT_EQ(got.output.find("pinned by", got.output.find("pinned by") + 1), std::string::npos);
  EXPECT_EQ(got.code, 0) << got.output;
  EXPECT_CONTAINS(script("build(r);\ncmd.set_lrr(1)\n").output, "cmd has no set_lrr; did you mean");
  EXPECT_CONTAINS(script("build(r);\ncmd.set_lr('fast')\n").output,
                  "[cmd.set_lr] lr = \"fast\": expected a number");
  EXPECT_CONTAINS(script("build(r);\ncmd:set_lr(1)\n").output, "cmd:set_lr must be written with a dot");
  EXPECT_CONTAINS(script("build(r);\ncmd.set_schedule(t.sched.linear { alpha_g = 1 })\n").output, "alpha_g");
  EXPECT_CONTAINS(script("build(r);\ntrainer:close()\ncmd.stop()\n").output, "E_EXPIRED  this cmd belonged");
}

TEST_F(ReplTest, LocalsAndFramesOfAnErrorStay) {
  write("local function inner(n) local half = n / 2 error('broken at ' .. half) end\nreturn inner\n",
        "lib.lua");
  Outcome got = here(
      "unset -f tycho; bin/tycho repl x.lua -e 'function f(n) local half = n / 2 error(\"broken\") end' -e "
      "'f(8)'");
  EXPECT_CONTAINS(got.output, "stdin:1");
  EXPECT_CONTAINS(got.output, "broken");
  EXPECT_EQ(got.code, 10);
  got = script("pcall(error)\nfunction f(n) local half = n / 2 return half.x.y end\n:who\n");
  EXPECT_CONTAINS(got.output, "  f                function  function\n");
}

TEST_F(ReplTest, NoEntryCrashesThePromptOrForgesItsEnd) {
  const auto entry = [&](const std::string& code) {
    return here("unset -f tycho; XDG_STATE_HOME=state bin/tycho repl -e '" + code + "'");
  };
  const Outcome nested = entry("local function f() return coroutine.wrap(f)() end f()");
  EXPECT_CONTAINS(nested.output, "nested too deep");
  EXPECT_EQ(nested.code, 10);
  const Outcome forged = entry("error({ exit = 0, code = \"E_INTERRUPTED\", message = \"all is well\" })");
  EXPECT_CONTAINS(forged.output, "stdin:1: E_INTERRUPTED  all is well");
  EXPECT_EQ(forged.code, 10);
  EXPECT_CONTAINS(entry("\x1bLJ").output, "this is Lua bytecode; an entry is Lua text");
}

TEST_F(ReplTest, AFrameIsChosenAndItsLocalsAreATable) {
  // A script ends at its first error: what follows it is typed.
  const Outcome got = shell("cd " + folder_.string() +
                            " && unset -f tycho; printf '%s\\n' 'function f(n) local half = n / 2; "
                            "error(\"broken\") end' 'function g() f(8) "
                            "return 1 end' 'g()' ':bt' ':frame 2' ':frame 1' 'locals.half + 100' ':frame 9' "
                            "':quit' | TERM=dumb script -qec "
                            "\"bin/tycho repl x.lua\" /dev/null");
  if (got.output.find("script: ") != std::string::npos || got.output.find("not found") != std::string::npos)
    GTEST_SKIP() << "no pseudo terminal: " << got.output;
  EXPECT_CONTAINS(got.output, "> 1  stdin:1 in f");
  EXPECT_CONTAINS(got.output, "  2  stdin:2 in g");
  EXPECT_CONTAINS(got.output, "  half = 4");
  EXPECT_CONTAINS(got.output, "104");
  EXPECT_CONTAINS(got.output, "there is no such frame");
}

TEST_F(ReplTest, AProfileSaysWhatTookLongestAndWhereTheTraceIs) {
  const Outcome got = script("build(r);\n:prof trainer:step(2)\n");
  EXPECT_CONTAINS(got.output, "  2/10 ba  loss");
  EXPECT_CONTAINS(got.output, "     250.000 ms      2 x  optimizer\n  trace: runs/fake/profile/trace.json");
  EXPECT_CONTAINS(script(":prof 1 + 1\n").output, "no run is open, so there is nothing to profile");
}

TEST_F(ReplTest, EveryCommandRuns) {
  const Outcome got = script(
      ":plan\n:time 1 + 1\n:bench 1 + 1\n:mem\n:heap\n:reload\n:who\n:history "
      "x\n:help\n?\n?trainer.step\n?t.sched.cosine\n"
      "?t.lazy\n?:plan\n:save saved.lua\n:log session.lua\n:doctor\nbuild(r);\n:mem\n?model\n:quit\nnever\n");
  EXPECT_EQ(got.code, 0) << got.output;
  EXPECT_CONTAINS(got.output, "nothing changed");
  EXPECT_CONTAINS(got.output, "trainer:step(n?: integer) : tycho.run.Steps");
  EXPECT_CONTAINS(got.output, "wrote saved.lua");
  EXPECT_EQ(here("tycho check saved.lua").code, 0);
  EXPECT_EQ(here("tycho diff x.lua saved.lua").output, "");
}

TEST_F(ReplTest, HelpOfANameShowsWhatItHolds) {
  const Outcome got = script(
      "function f(x)\n  return x + 1\nend\n?f\nf??\n?string.rep\nbook = { f = f, 3 }\n?book.f\nbook?\nf\n");
  EXPECT_EQ(got.code, 0) << got.output;
  const std::string text =
      "f is a function of stdin:1\n     1 | function f(x)\n     2 |   return x + 1\n     3 | end\n";
  EXPECT_CONTAINS(got.output, text + text);
  EXPECT_CONTAINS(got.output, "string.rep is a function of Lua's library");
  EXPECT_CONTAINS(got.output, "book.f is a function of stdin:1");
  EXPECT_CONTAINS(got.output, "book is a table: { 3, f = function }");
  EXPECT_CONTAINS(got.output, "\nfunction     -- stdin:1\n");
  EXPECT_CONTAINS(script("?nothing_like_it\n").output, "no help for nothing_like_it");
}

TEST_F(ReplTest, HelpKnowsKeysOfComponentsAndWhatIsADefault) {
  write(whole(R"(r.callbacks.mine = t.component { name = "mine", batch_end = function() end,
  fields = { patience = t.integer { default = 3, min = 1, help = "Calls to wait." } } } {}
r.callbacks.spike = t.cb.loss_spike {}
)"));
  const Outcome got =
      script("?callbacks.mine.patience\n?r.callbacks.mine.patience\n?callbacks.spike.sigmas\n");
  EXPECT_EQ(got.code, 0) << got.output;
  const std::string patience = "callbacks.mine.patience : integer >= 1, default 3.  Calls to wait.\n";
  EXPECT_CONTAINS(got.output, patience + patience);
  EXPECT_CONTAINS(got.output, "callbacks.spike.sigmas : number > 0");
  EXPECT_EQ(script("?optimizer.eps\n").output.find("set:"), std::string::npos);
  EXPECT_CONTAINS(script("r.optimizer.eps = 1e-7\n?optimizer.eps\n").output, "set: stdin:1");
}

TEST_F(ReplTest, PrintShowsWhatTablesHold) {
  EXPECT_EQ(script("print({ 1, a = { 2 } }, \"x\", nil, 2^53)\n").output,
            "{ 1, a = { 2 } }\tx\tnil\t9007199254740992\n");
}

TEST_F(ReplTest, HabitsOfIPythonAreAnswered) {
  EXPECT_CONTAINS(script("%timeit 1 + 1\n").output, ":bench 1 + 1");
  EXPECT_CONTAINS(script("%matplotlib inline\n").output, "?  lists them");
  const Outcome shell_command = script("!ls\n");
  EXPECT_CONTAINS(shell_command.output, ";ls");
  EXPECT_EQ(shell_command.code, 2);
}

TEST_F(ReplTest, ReloadSaysWhatChanged) {
  const std::string changed = whole("r.seed = 99\n");
  write(changed, "y.lua");
  const Outcome got = script(";cp y.lua x.lua\n:reload\nr.seed\n");
  EXPECT_CONTAINS(got.output, "  seed  17 -> 99\n99\n");
}

TEST_F(ReplTest, DiffComparesRecipes) {
  write(whole("r.seed = 99\n"), "y.lua");
  EXPECT_EQ(script(":diff y.lua\n").output, "  seed  17 -> 99\n");
  EXPECT_EQ(script("r.seed = 99\n:diff y.lua\n").output, "nothing differs\n");
  EXPECT_EQ(script(":diff y.lua x.lua\nr.seed\n").output, "  seed  99 -> 17\n17\n");
  EXPECT_CONTAINS(script(":diff\n").output, ":diff expects a recipe");
  EXPECT_CONTAINS(script(":diff z.lua\n").output, "cannot read z.lua");
}

TEST_F(ReplTest, MistakesOfCommandsAreNamed) {
  EXPECT_CONTAINS(script(":wyh seed\n").output, "no command :wyh; did you mean :why?");
  EXPECT_CONTAINS(script(":why sed\n").output, "no key sed");
  EXPECT_CONTAINS(script(":save x.lua\n").output, "x.lua already exists");
  EXPECT_CONTAINS(script("for i = 1, 2 do\n").output, "the script ends inside an entry");
  EXPECT_CONTAINS(script("x = 'open\n").output, "not Lua: unfinished string");
  EXPECT_CONTAINS(script("y\n").output, "undeclared name  y");
  EXPECT_CONTAINS(script("a += 1\n").output, "Lua has no \"+=\"");
  EXPECT_CONTAINS(script("plot({ 1 }, { 1, 2 })\n").output, "x has 1 values, y has 2");
}

TEST_F(ReplTest, APostMortemNeedsATerminal) {
  Outcome got = here("tycho run x.lua --on-error repl < /dev/null");
  EXPECT_CONTAINS(got.output, "--on-error repl needs a terminal");
  EXPECT_EQ(got.code, 2);
  got = here("tycho run x.lua --on-error ask");
  EXPECT_CONTAINS(got.output, "--on-error must be stop or repl, got ask");
}

TEST_F(ReplTest, ABrokenRecipeEndsAScript) {
  write("local t = require 'tycho'\nlocal r = t.recipe 'x'\nr.seq_len = -1\nreturn r\n");
  for (const Outcome& got :
       {script("print 'not reached'\n"), here("tycho repl x.lua -e \"print 'not reached'\""),
        here("tycho repl x.lua < /dev/null")}) {
    EXPECT_CONTAINS(got.output, "x.lua:3:13: seq_len = -1");
    EXPECT_EQ(got.output.back(), '\n');
    EXPECT_EQ(got.output.find("not reached"), std::string::npos);
    EXPECT_EQ(got.code, 10);
  }
  const Outcome missing = here("tycho repl nofile.lua < /dev/null");
  EXPECT_EQ(missing.output.find("cannot read nofile.lua\n"), 0) << missing.output;
  EXPECT_EQ(missing.code, 10);
  write(whole());
  const Outcome reloaded = script(";echo 'return 1' > x.lua\n:reload\nprint 'not reached'\n");
  EXPECT_CONTAINS(reloaded.output, "the file returned a number, not a recipe");
  EXPECT_EQ(reloaded.output.find("not reached"), std::string::npos);
  EXPECT_EQ(reloaded.code, 10);
}

TEST_F(ReplTest, StartsWithoutARecipe) {
  EXPECT_EQ(here("unset -f tycho; echo '2 ^ 10' | bin/tycho repl").output, "1024\n");
  const Outcome usage = here("tycho repl seed=1 < /dev/null");
  EXPECT_CONTAINS(usage.output, "needs a recipe");
  EXPECT_EQ(usage.code, 2);
}

}  // namespace
}  // namespace tycho
