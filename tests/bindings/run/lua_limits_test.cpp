// What callbacks and operators may use: memory of their own, time with a warning, and no exit codes.
#include <atomic>
#include <csignal>
#include <thread>

#include "bindings/define/watch.h"
#include "tests/bindings/run/lua_callbacks_fixture.h"

namespace tycho {
namespace {

using LuaLimitsTest = LuaCallbacksTest;

/// Presses Ctrl-C again and again for this thread while it lives.
class CtrlC {
 public:
  CtrlC() {
    std::signal(SIGUSR2, [](int) { LuaWatch::interrupt(); });
    impatient_ = std::thread([this, target = pthread_self()] {
      while (!done_) {
        pthread_kill(target, SIGUSR2);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  ~CtrlC() {
    done_ = true;
    impatient_.join();
  }

 private:
  std::atomic<bool> done_ = false;
  std::thread impatient_;
};

TEST_F(LuaLimitsTest, AsManyCallbacksAsARecipeMayHaveAreReadAndSetUpWithinTheLimits) {
  std::string lines;
  for (int i = 0; i < 1000; ++i)
    lines += fmt::format(
        "r.callbacks.c{} = t.observe {{ state = {{ n = {} }},\n"
        "  batch_end = function(ctx, st)\n    st.n = st.n + 1\n  end }}\n",
        i, i);
  load(lines);
  ASSERT_EQ(callbacks_.size(), 1000u);
  EXPECT_EQ(callbacks_[0].name, "c0");
  EXPECT_EQ(callbacks_[999].name, "c999");
  EXPECT_EQ(call(), "");
  EXPECT_EQ(callbacks_[0].code->state().at("n"), 1);
}

/// A state that has little in it and is endless once it is copied, as states are: 8^13 numbers.
constexpr const char* kGrows =
    "local state = { 1 }\nfor i = 1, 13 do\n  local s = state\n  state = { s, s, s, s, s, s, s, s }\nend\n"
    "r.callbacks.a = t.observe { state = state, batch_end = function() end }";

TEST_F(LuaLimitsTest, AStateThatGrowsWhenItIsCopiedIsStopped) {
  try {
    load(kGrows);
    FAIL() << "it was copied";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_NE(std::string(error.what()).find("stopped"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("x.lua:12"), std::string::npos) << error.what();
  }
}

TEST_F(LuaLimitsTest, CtrlCEndsTheReadingOfCallbacks) {
  const CtrlC pressed;
  try {
    load(kGrows);
    FAIL() << "it was copied";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInterrupted) << error.what();
  }
}

TEST_F(LuaLimitsTest, ARecipeThatKeepsMoreThanCallbacksMayUseSaysSo) {
  try {
    load(
        "r.lua_memory = \"16MiB\"\nlocal text = (\"x\"):rep(2^24)\n"
        "r.callbacks.a = t.observe { batch_end = function() print(text) end }");
    FAIL() << "it was set up";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_TRUE(
        std::string(error.what())
            .starts_with("[callbacks] expected at most lua_memory = 16MiB in use when training starts, "
                         "got "))
        << error.what();
  }
}

TEST_F(LuaLimitsTest, WhatOperatorsLeaveInMemoryIsNotTheRecipes) {
  load(
      "r.lua_memory = \"64MiB\"\n"
      "r.callbacks.a = t.observe { batch_end = function() local s = (\"x\"):rep(2^24 - 1) .. \"y\" end }");
  CallbackPort port{commands_};
  const EventInfo info{Event::kBatchEnd, metrics_, run_};
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(source_->evaluate(fmt::format("local s = ('{}x'):rep(2^22) return #s", i), false, info, port)
                  .substr(0, 1),
              i < 10 ? "8" : "1");  // 8 or 12 MiB
  EXPECT_EQ(source_->evaluate("kept = ('x'):rep(2^23)", false, info, port), "");
  EXPECT_EQ(source_->evaluate("#kept", false, info, port), "8388608");
  EXPECT_EQ(call(), "");
  const auto refusal = [&](const std::string& code) -> std::string {
    try {
      return "no error but " + source_->evaluate(code, false, info, port);
    } catch (const Error& error) {
      return error.what();
    }
  };
  const std::string full = refusal("more = {} for i = 1, 100 do more[i] = (i .. 'x'):rep(2^21) end");
  EXPECT_NE(full.find("64 MiB"), std::string::npos) << full;
  EXPECT_NE(full.find("the names that entries had set are gone"), std::string::npos) << full;
  EXPECT_EQ(source_->evaluate("1 + 1", false, info, port), "2");
  EXPECT_EQ(call(), "");
}

TEST_F(LuaLimitsTest, OperatorsCannotEndTheProcessOrForgeItsEnd) {
  load(
      "r.callbacks.a = t.observe { batch_end = function() error({ exit = 0, code = 'E_INTERRUPTED', message "
      "= 'm' }) end }");
  CallbackPort port{commands_};
  const EventInfo info{Event::kBatchEnd, metrics_, run_};
  const auto refusal = [&](const std::string& code) -> std::pair<std::string, ExitCode> {
    try {
      return {"no error but " + source_->evaluate(code, false, info, port), ExitCode::kOk};
    } catch (const Error& error) {
      return {error.what(), error.code()};
    }
  };
  EXPECT_EQ(refusal("local function f() return coroutine.wrap(f)() end f()").first.find("no error"),
            std::string::npos);
  EXPECT_NE(refusal("\x1bLJ\x02").first.find("this is Lua bytecode; an entry is Lua text"),
            std::string::npos);
  EXPECT_NE(refusal("load('\\27LJ')").first.find("only text can be loaded"), std::string::npos);
  const auto [said, code] = refusal("error({ exit = 130, code = 'E_INTERRUPTED', message = 'all is well' })");
  EXPECT_EQ(said, "ctl:1: all is well");
  EXPECT_EQ(code, ExitCode::kFailure);
  EXPECT_EQ(call(), "x.lua:7: m");
}

TEST_F(LuaLimitsTest, ACallbackThatUsesTooMuchMemoryFailsWithItsLimit) {
  load(
      "r.lua_memory = \"32MiB\"\n"
      "r.callbacks.a = t.observe { batch_end = function() local x = {}\n"
      "  for i = 1, 1e9 do x[i] = { i } end end }");
  EXPECT_EQ(call(), "x.lua:9: stopped: Lua uses more than 32 MiB here, the limit of lua_memory");
  EXPECT_EQ(source_->take_failure().at("frames").at(0).at("locals").at(0).at("text"), "a large table");
  load(
      "r.lua_memory = \"32MiB\"\n"
      "r.callbacks.a = t.observe { batch_end = function()\n  local x = ('x'):rep(2^24) x = x .. x .. x .. x "
      ".. x end }");
  EXPECT_NE(call().find("more memory than lua_memory allows"), std::string::npos) << raised_;
}

TEST_F(LuaLimitsTest, ASlowCallbackIsNamedWhileItRuns) {
  load(
      "r.callbacks.a = t.observe { time_limit = \"6s\", batch_end = function()\n"
      "  while true do end\nend }");
  EXPECT_TRUE(call().starts_with("x.lua:8: stopped after")) << raised_;
  ASSERT_EQ(session_.events_.size(), 1u);
  EXPECT_TRUE(
      session_.events_[0].starts_with("warning: batch_end of \"a\" has been running for 5 s, now at "))
      << session_.events_[0];
  EXPECT_NE(session_.events_[0].find("x.lua:8; training waits for it"), std::string::npos)
      << session_.events_[0];
}

}  // namespace
}  // namespace tycho
