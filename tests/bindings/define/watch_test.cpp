// Lua code that tries not to end: it is stopped, named, and at last the process ends.
#include "bindings/define/watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bindings/define/lua_util.h"

namespace tycho {
namespace {

class WatchTest : public testing::Test {
 protected:
  /// What running the text raises, "" for nothing; code_ is its exit code.
  std::string run(const std::string& text, const char* name = "@x.lua") {
    lua_State* L = state_.get();
    lua_settop(L, 0);
    EXPECT_EQ(luaL_loadbuffer(L, text.data(), text.size(), name), 0) << text;
    try {
      call_lua(L, 0, 0);
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
    code_ = ExitCode::kOk;
    return "";
  }
  std::string run_limited(const std::string& text, const LuaLimits& limits) {
    const LuaWatch watch(state_.get(), limits);
    return run(text);
  }

  LuaState state_;
  ExitCode code_ = ExitCode::kOk;
};

constexpr LuaLimits kMillion = {.max_instructions = 1'000'000};
constexpr int64_t kEndless = int64_t{1} << 40;

TEST_F(WatchTest, MessageHandlersAreStopped) {
  const std::string said =
      run_limited("local function f() while true do end end\nxpcall(f, f)\nwhile true do end", kMillion);
  EXPECT_NE(said.find("is there an endless loop?"), std::string::npos) << said;
  EXPECT_EQ(code_, ExitCode::kRecipe);
}

TEST_F(WatchTest, MessageHandlersAreInterrupted) {
  const LuaWatch watch(state_.get(), {.max_instructions = kEndless});
  std::signal(SIGUSR2, [](int) { LuaWatch::interrupt(); });
  std::thread impatient([target = pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pthread_kill(target, SIGUSR2);
  });
  const std::string said = run("local function f() while true do end end\nwhile true do xpcall(f, f) end");
  impatient.join();
  EXPECT_TRUE(said.starts_with("interrupted at x.lua:")) << said;
  EXPECT_EQ(code_, ExitCode::kInterrupted);
}

TEST_F(WatchTest, TheHandlerOfTheHostMayCallWhatRecipesWrote) {
  const std::string text =
      "local t = setmetatable({}, { __tostring = function() while true do end end })\n"
      "xpcall(function() while true do end end, function() return tostring(t) end)\n";
  const std::string said = run_limited(text, kMillion);
  EXPECT_NE(said.find("is there an endless loop?"), std::string::npos) << said;
}

// Each of these takes about a millisecond at every turn, and few instructions.
TEST_F(WatchTest, LoopsOfLongFunctionsAreStoppedInTime) {
  const std::vector<std::string> bodies = {"s:find('y', 1, true)",
                                           "s:rep(2)",
                                           "s:reverse()",
                                           "s:lower()",
                                           "('%s%s'):format(s, i)",
                                           "tonumber(digits)",
                                           "table.concat(list)",
                                           "table.insert(list, 1, 'x')",
                                           "table.maxn(list)",
                                           "load(code)",
                                           "local x = s .. i",
                                           "select('#', unpack(list, 1, 7000))",
                                           "select('#', s:byte(1, 7000))",
                                           "string.format('%q', s)"};
  for (const std::string& body : bodies) {
    const std::string text =
        "local s, digits, code, list = ('x'):rep(2^22), ('1'):rep(2^22), ('x = 1 '):rep(2^13), {}\n"
        "for i = 1, 200000 do list[i] = 'abc' end\nfor i = 1, 1e9 do\n  " +
        body + "\nend";
    const std::string said = run_limited(text, {.max_instructions = kEndless, .max_seconds = 0.3});
    EXPECT_TRUE(said.starts_with("stopped after") &&
                said.find("is there an endless loop?") != std::string::npos)
        << body << ": " << said;
    lua_gc(state_.get(), LUA_GCCOLLECT, 0);
  }
}

TEST_F(WatchTest, CodeOfTheHostIsStoppedTooWhenItDoesNotEnd) {
  const LuaWatch watch(state_.get(), kMillion);
  const std::string said = run("while true do end", "=lua/tycho/x.lua");
  EXPECT_TRUE(said.starts_with("stopped after")) << said;
}

TEST_F(WatchTest, GarbageDoesNotCountAsMemoryInUse) {
  const LuaLimits limits = {.max_bytes = 16 << 20};
  EXPECT_EQ(run_limited("for i = 1, 1000 do local s = (i .. 'x'):rep(2^18) end", limits), "");
  EXPECT_NE(
      run_limited("local x = {} for i = 1, 1000 do x[i] = (i .. 'x'):rep(2^18) end", limits).find("16 MiB"),
      std::string::npos);
}

TEST_F(WatchTest, OneAllocationCannotTakeMuchMoreThanTheLimit) {
  const LuaState small(int64_t{16} << 20);
  const LuaWatch watch(small.get(), {.max_bytes = 16 << 20});
  const std::string text = "return #('x'):rep(2^26)";
  ASSERT_EQ(luaL_loadbuffer(small.get(), text.data(), text.size(), "@x.lua"), 0);
  EXPECT_EQ(lua_pcall(small.get(), 0, 1, 0), LUA_ERRMEM);
}

TEST_F(WatchTest, LongCallsAreReportedWithTheirLines) {
  std::vector<std::string> warnings;
  const std::function<void(const std::string&)> warn = [&](const std::string& text) {
    warnings.push_back(text);
  };
  const LuaLimits limits = {.max_instructions = kEndless,
                            .max_seconds = 1.5,
                            .max_is_wall_clock = true,
                            .warn_s = 0.2,
                            .what = "batch_end of \"spike\"",
                            .warn = &warn};
  run_limited("local function busy()\n  while true do end\nend\nlocal x = busy()\nreturn x", limits);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("batch_end of \"spike\" has been running for ")) << warnings[0];
  EXPECT_TRUE(warnings[0].ends_with("s, now at x.lua:2, called from x.lua:4")) << warnings[0];
}

int spin(lua_State*) {
  for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int wait_for_the_engine(lua_State*) {
  const LuaWatch::EngineCall waits;
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  return 0;
}

TEST_F(WatchTest, WhatWaitsForTheEngineIsNamedWhileItWaitsAndWithItsLineAfterwards) {
  lua_register(state_.get(), "wait", wait_for_the_engine);
  std::vector<std::string> warnings;
  const std::function<void(const std::string&)> warn = [&](const std::string& text) {
    warnings.push_back(text);
  };
  const LuaLimits limits = {.max_seconds = 60,
                            .max_is_wall_clock = true,
                            .warn_s = 0.1,
                            .what = "fit_start of \"a\"",
                            .warn = &warn};
  testing::internal::CaptureStderr();
  const LuaWatch watch(state_.get(), limits);
  EXPECT_EQ(run("wait()\nwait()\nfor i = 1, 1e5 do end"), "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("warning: fit_start of \"a\" has been running for ")) << said;
  EXPECT_TRUE(said.ends_with(" s, now in a call of the engine\n")) << said;
  EXPECT_TRUE(watch.was_named());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].ends_with("now at x.lua:3")) << warnings[0];
}

using WatchDeathTest = WatchTest;

TEST_F(WatchDeathTest, AProcessWhoseLuaCodeCannotBeStoppedEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  lua_register(state_.get(), "spin", spin);
  const LuaLimits limits = {
      .max_seconds = 0.2, .max_is_wall_clock = true, .exit_s = 0.5, .what = "batch_end of \"a\""};
  EXPECT_EXIT(
      run_limited("spin()", limits), testing::ExitedWithCode(static_cast<int>(ExitCode::kRecipe)),
      "batch_end of \"a\" still runs . s after it was stopped at its time limit, so the process ends now");
}

TEST_F(WatchTest, CodeThatWaitsForTheEngineIsStoppedAfterItAndDoesNotEndTheProcess) {
  lua_register(state_.get(), "wait", wait_for_the_engine);
  const LuaLimits limits = {.max_seconds = 0.2, .max_is_wall_clock = true, .exit_s = 0.4};
  const std::string said = run_limited("wait()\nlocal x = 1\nwhile true do x = x + 1 end", limits);
  EXPECT_TRUE(said.starts_with("stopped after")) << said;
}

}  // namespace
}  // namespace tycho
