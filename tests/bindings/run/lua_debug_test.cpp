// t.debug(): a prompt inside a call, its names, its limits, and what happens without a terminal.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bindings/run/debug_terminal.h"
#include "tests/bindings/run/lua_callbacks_fixture.h"

namespace tycho {
namespace {

using LuaDebugTest = LuaCallbacksTest;

/// A person who types these lines, and then leaves.
struct TypedLines final : DebugTerminal {
  std::string refusal() const override { return why_not; }
  std::optional<std::string> read_line(const std::string& prompt, double) override {
    shown += prompt;
    std::this_thread::sleep_for(pause);
    if (lines.empty()) return std::nullopt;
    const std::string line = lines.front();
    lines.erase(lines.begin());
    return line;
  }
  void write(const std::string& text) override { shown += text; }
  void close() override { shown += "(closed)"; }
  std::vector<std::string> lines;
  std::string why_not, shown;
  std::chrono::milliseconds pause{0};
};

TEST_F(LuaDebugTest, DebugOpensAPromptThatSeesTheFunction) {
  load(
      "local limit = 5\nr.callbacks.a = t.control { time_limit = '0.3s', state = { n = 1 }, batch_end = "
      "function(ctx, st)\n"
      "  local above = ctx.loss - limit\n  t.debug()\n  ctx.log:info('after ' .. above) end }");
  TypedLines person;
  person.lines = {"above",  "limit, st.n",   "st.n = 7", "abov", "cmd.set_lr(0.5)", "while true do end",
                  "?above", "?optimizer.lr", "?abov",    " ? ",  "continue",        "never read"};
  person.pause = std::chrono::milliseconds(100);  // longer than time_limit together
  source_->set_terminal(&person);
  metrics_.loss = 7.5;
  EXPECT_EQ(call(), "");
  const size_t line = person.shown.find("t.debug() at ");
  ASSERT_NE(line, std::string::npos);
  EXPECT_NE(
      person.shown.find("x.lua:10; the run waits, for at most 20 minutes. Names: above ctx limit st t."),
      std::string::npos)
      << person.shown;
  EXPECT_NE(person.shown.find("> 2.5\n"), std::string::npos) << person.shown;
  EXPECT_NE(person.shown.find("> 5\t1\n"), std::string::npos) << person.shown;
  for (const char* said :
       {"debug:1: undeclared name  abov; did you mean  above?", "above is a number: 2.5\n",
        "optimizer.lr : number > 0, required.  Peak learning rate", "no help for abov: did you mean above?",
        "?name  explains a name here or a key of the recipe"})
    EXPECT_NE(person.shown.find(said), std::string::npos) << said << " in " << person.shown;
  EXPECT_EQ(person.shown.find("ctl:"), std::string::npos) << person.shown;
  EXPECT_GT(waited_s_, 1.0) << "eleven lines of 100 ms";
  EXPECT_NE(person.shown.find("is there an endless loop?"), std::string::npos) << person.shown;
  EXPECT_NE(person.shown.find("x.lua:10\n(closed)"), std::string::npos) << person.shown;
  EXPECT_EQ(person.lines, std::vector<std::string>{"never read"});
  EXPECT_EQ(callbacks_[0].code->state().at("n"), 7);
  EXPECT_EQ(commands_.size(), 1u);
  EXPECT_EQ(session_.events_, std::vector<std::string>{R"(info: after 2.5 {"step":0})"});
}

TEST_F(LuaDebugTest, DebugWithoutATerminalSaysSoOnceAndContinues) {
  load("r.callbacks.a = t.observe { batch_end = function(ctx) t.debug() end }");
  TypedLines nobody;
  nobody.why_not = "there is no terminal";
  source_->set_terminal(&nobody);
  EXPECT_EQ(call(), "");
  EXPECT_EQ(call(), "");
  const size_t at = nobody.shown.find("x.lua:7: there is no terminal, so the run continues\n");
  ASSERT_NE(at, std::string::npos) << nobody.shown;
  EXPECT_EQ(nobody.shown.find("no terminal", at + 20), std::string::npos) << nobody.shown;
}

TEST_F(LuaDebugTest, DebugOutsideOfACallIsRefused) {
  try {
    load("t.debug()");
    ADD_FAILURE() << "it loaded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("t.debug opens a prompt in a function that a run calls"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tycho
