// Errors and values across the border between C++ and Lua, and ending Lua code from outside.
#include "bindings/define/lua_util.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <thread>

#include "bindings/define/watch.h"

namespace tycho {
namespace {

/// Counts how often it was destroyed.
struct Probe {
  int* count;
  explicit Probe(int& counter) : count(&counter) {}
  ~Probe() { ++*count; }
};
int g_destroyed = 0;

int raise_lua_error(lua_State* L) {
  return protect(L, [&]() -> int {
    const Probe probe(g_destroyed);
    return luaL_error(L, "from Lua");
  });
}

int raise_error(lua_State* L) {
  return protect(L, [&]() -> int {
    const Probe probe(g_destroyed);
    fail(ExitCode::kStorage, "[disk] expected room, it is full");
  });
}

int raise_standard(lua_State* L) {
  return protect(L, [&]() -> int { throw std::out_of_range("no such index"); });
}

void load(const LuaState& state, const char* text, const char* name = "@recipe.lua") {
  ASSERT_EQ(luaL_loadbuffer(state.get(), text, std::strlen(text), name), 0);
}

/// The Error that running the text raises.
Error error_of(const LuaState& state, const char* text, bool trace = false) {
  load(state, text);
  try {
    call_lua(state.get(), 0, 0, trace);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error from: " << text;
  return Error("none");
}

class LuaUtilTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_destroyed = 0;
    lua_register(state_.get(), "raise_lua_error", raise_lua_error);
    lua_register(state_.get(), "raise_error", raise_error);
    lua_register(state_.get(), "raise_standard", raise_standard);
  }
  LuaState state_;
};

TEST_F(LuaUtilTest, LuaErrorsRunDestructorsOfCppFrames) {
  const Error error = error_of(state_, "for i = 1, 100 do pcall(raise_lua_error) end raise_lua_error()");
  EXPECT_EQ(g_destroyed, 101);
  EXPECT_NE(std::string(error.what()).find("from Lua"), std::string::npos);
}

TEST_F(LuaUtilTest, ErrorsKeepTextAndExitCodeAcrossLua) {
  const Error error = error_of(state_, "raise_error()");
  EXPECT_STREQ(error.what(), "[disk] expected room, it is full");
  EXPECT_EQ(error.code(), ExitCode::kStorage);
  EXPECT_EQ(g_destroyed, 1);
}

TEST_F(LuaUtilTest, LuaSeesAStructuredError) {
  load(state_,
       "local ok, e = pcall(raise_error)\n"
       "return { ok = ok, code = e.code, exit = e.exit, text = tostring(e), message = e.message }");
  call_lua(state_.get(), 0, 1);
  const Json seen = read_json(state_.get(), -1);
  EXPECT_EQ(seen["ok"], false);
  EXPECT_EQ(seen["code"], "E_STORAGE");
  EXPECT_EQ(seen["exit"], 15);
  EXPECT_EQ(seen["text"], seen["message"]);
}

TEST_F(LuaUtilTest, ErrorsSayWhereTheRecipeWas) {
  load(state_, "local x = 1\nlocal ok, e = pcall(function()\n  raise_error()\nend)\nreturn e.where");
  call_lua(state_.get(), 0, 1);
  EXPECT_STREQ(lua_tostring(state_.get(), -1), "recipe.lua:3");
}

TEST_F(LuaUtilTest, StandardExceptionsKeepTheirText) {
  const Error error = error_of(state_, "raise_standard()");
  EXPECT_NE(std::string(error.what()).find("no such index"), std::string::npos);
  EXPECT_EQ(error.code(), ExitCode::kFailure);
}

TEST_F(LuaUtilTest, FramesAreShownOnlyWhenAskedFor) {
  const char* text = "local function inner() raise_error() end\ninner()";
  EXPECT_EQ(std::string(error_of(state_, text).what()).find("recipe.lua:1"), std::string::npos);
  EXPECT_NE(std::string(error_of(state_, text, true).what()).find("recipe.lua:1"), std::string::npos);
}

TEST_F(LuaUtilTest, ErrorsThatAreNotTextDoNotVanish) {
  EXPECT_STRNE(error_of(state_, "error(nil)").what(), "");
  EXPECT_STRNE(error_of(state_, "error(function() end)").what(), "");
}

TEST_F(LuaUtilTest, OnlyTychoChoosesExitCodes) {
  EXPECT_EQ(error_of(state_, "error({ message = 'm', exit = 0 })").code(), ExitCode::kFailure);
  EXPECT_EQ(error_of(state_, "local _, e = pcall(raise_error) e.exit = 0 error(e)").code(),
            ExitCode::kStorage);
  EXPECT_EQ(error_of(state_,
                     "local _, e = pcall(raise_error)\n"
                     "error(setmetatable({ message = 'm', exit = 0 }, debug.getmetatable(e)))")
                .code(),
            ExitCode::kFailure);
}

TEST_F(LuaUtilTest, AnErrorWhoseMetamethodsFailIsStillAnError) {
  const char* text =
      "local function no() error('metamethod') end\n"
      "error(setmetatable({}, { __index = no, __newindex = no, __tostring = no }))";
  EXPECT_EQ(error_of(state_, text).code(), ExitCode::kFailure);
  EXPECT_EQ(error_of(state_, text, true).code(), ExitCode::kFailure);
}

TEST_F(LuaUtilTest, TheStackIsBalanced) {
  const int top = lua_gettop(state_.get());
  error_of(state_, "raise_error()");
  push_json(state_.get(), Json{{"a", Json::array({1, 2.5, "x", nullptr, true})}});
  read_json(state_.get(), -1);
  EXPECT_EQ(lua_gettop(state_.get()), top + 1);
}

TEST_F(LuaUtilTest, JsonSurvivesTheRoundTrip) {
  const Json json = {{"empty", Json::array()}, {"list", {1, 2, 3}}, {"nested", {{"x", 0.1}, {"y", nullptr}}},
                     {"text", "a\nb"},         {"truth", false},    {"whole", 9007199254740992}};
  push_json(state_.get(), json);
  EXPECT_EQ(read_json(state_.get(), -1).dump(), json.dump());
}

TEST_F(LuaUtilTest, FunctionsAreNotData) {
  load(state_, "return { x = print }");
  call_lua(state_.get(), 0, 1);
  EXPECT_THROW(read_json(state_.get(), -1), Error);
}

TEST_F(LuaUtilTest, TablesThatContainThemselvesAreRefused) {
  load(state_, "local x = {} x.x = x return x");
  call_lua(state_.get(), 0, 1);
  EXPECT_THROW(read_json(state_.get(), -1), Error);
}

TEST_F(LuaUtilTest, EndlessLoopsAreStopped) {
  const LuaWatch watch(state_.get(), {.max_instructions = 1'000'000});
  const Error error = error_of(state_, "\nwhile true do end");
  EXPECT_NE(std::string(error.what()).find("is there an endless loop?"), std::string::npos);
  EXPECT_EQ(error.code(), ExitCode::kRecipe);
}

TEST_F(LuaUtilTest, SwallowedStopsAreRaisedAgain) {
  const LuaWatch watch(state_.get(), {.max_instructions = 1'000'000});
  const Error error = error_of(state_, "while true do pcall(function() while true do end end) end");
  EXPECT_NE(std::string(error.what()).find("loop"), std::string::npos) << error.what();
  EXPECT_EQ(error.code(), ExitCode::kRecipe);
}

TEST_F(LuaUtilTest, MemoryIsLimited) {
  const LuaWatch watch(state_.get(), {.max_bytes = 16 << 20});
  const Error error = error_of(state_, "local x = {} while true do x[#x + 1] = {} end");
  EXPECT_NE(std::string(error.what()).find("16 MiB"), std::string::npos);
}

TEST_F(LuaUtilTest, InterruptEndsLuaCodeWithItsLine) {
  const LuaWatch watch(state_.get(), {.max_instructions = int64_t{1} << 40});
  std::signal(SIGUSR2, [](int) { LuaWatch::interrupt(); });
  std::thread impatient([target = pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pthread_kill(target, SIGUSR2);
  });
  const Error error = error_of(state_, "local x\nwhile true do\n  x = 1\nend");
  impatient.join();
  EXPECT_EQ(error.code(), ExitCode::kInterrupted);
  EXPECT_NE(std::string(error.what()).find("interrupted at recipe.lua:"), std::string::npos);
}

TEST_F(LuaUtilTest, AWatchInsideAnotherHandsBack) {
  const LuaWatch outer(state_.get(), {.max_instructions = 1'000'000});
  {
    const LuaState other;
    const LuaWatch inner(other.get(), {.max_instructions = int64_t{1} << 40});
    load(other, "for i = 1, 10000000 do end");
    call_lua(other.get(), 0, 0);
    EXPECT_TRUE(LuaWatch::interrupt());
  }
  EXPECT_EQ(error_of(state_, "while true do end").code(), ExitCode::kInterrupted);
}

TEST(LuaWatch, InterruptWithoutLuaCodeSaysSo) { EXPECT_FALSE(LuaWatch::interrupt()); }

}  // namespace
}  // namespace tycho
