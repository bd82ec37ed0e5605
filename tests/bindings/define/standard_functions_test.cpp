// table.sort and coroutines against Lua's manual, and what Lua's own do not survive.
#include "bindings/define/standard_functions.h"

#include <gtest/gtest.h>

#include <string>

#include "bindings/define/lua_util.h"
#include "bindings/define/strings.h"
#include "bindings/define/watch.h"

namespace tycho {
namespace {

class StandardFunctionsTest : public testing::Test {
 protected:
  void SetUp() override {
    push_strings(state_.get());
    lua_setglobal(state_.get(), "ours");
  }
  /// What the text returns, as text; what it raises begins with "error: ".
  std::string run(const std::string& text) {
    lua_State* L = state_.get();
    lua_settop(L, 0);
    if (luaL_loadbuffer(L, text.data(), text.size(), "@x.lua") != 0) return lua_tostring(L, -1);
    try {
      call_lua(L, 0, 1);
    } catch (const Error& error) {
      return std::string("error: ") + error.what();
    }
    const char* given = lua_tostring(L, -1);
    return given != nullptr ? given : "nil";
  }
  LuaState state_;
};

TEST_F(StandardFunctionsTest, SortGivesTheOrderOfTheComparison) {
  EXPECT_EQ(run("local t = {3, 1, 2} table.sort(t) return table.concat(t, ' ')"), "1 2 3");
  EXPECT_EQ(run("local t = {} table.sort(t) return #t"), "0");
  EXPECT_EQ(run("local t = {5} table.sort(t) return t[1]"), "5");
  EXPECT_EQ(run("local t = {'b', 'a', 'C', ''} table.sort(t) return table.concat(t, ',')"), ",C,a,b");
  EXPECT_EQ(
      run("local t = {1, 3, 2} table.sort(t, function(a, b) return a > b end) return table.concat(t, ' ')"),
      "3 2 1");
  EXPECT_EQ(run("local m = { __lt = function(a, b) return a.x < b.x end }\n"
                "local t = {} for i = 1, 5 do t[i] = setmetatable({ x = i * 3 % 5 }, m) end table.sort(t)\n"
                "local s = '' for i = 1, 5 do s = s .. t[i].x end return s"),
            "01234");
}

// Sorted, and nothing lost: for all lengths around powers of two.
TEST_F(StandardFunctionsTest, SortKeepsEveryElement) {
  EXPECT_EQ(run("local x = 1\n"
                "for n = 0, 130 do\n"
                "  local t, seen = {}, {}\n"
                "  for i = 1, n do x = x * 16807 % 2147483647 t[i] = x % 50 seen[t[i]] = (seen[t[i]] or 0) + "
                "1 end\n"
                "  table.sort(t)\n"
                "  for i = 1, n do\n"
                "    if i > 1 and t[i] < t[i - 1] then return 'not sorted at length ' .. n end\n"
                "    seen[t[i]] = seen[t[i]] - 1\n"
                "  end\n"
                "  for k, count in pairs(seen) do if count ~= 0 then return 'lost ' .. k .. ' at length ' .. "
                "n end end\n"
                "end\nreturn 'right'"),
            "right");
}

TEST_F(StandardFunctionsTest, EqualElementsKeepTheirOrder) {
  EXPECT_EQ(
      run("local t = {} for i = 1, 40 do t[i] = { key = i % 3, i = i } end\n"
          "table.sort(t, function(a, b) return a.key < b.key end)\n"
          "for i = 2, 40 do if t[i].key == t[i - 1].key and t[i].i < t[i - 1].i then return 'moved' end end\n"
          "return 'kept'"),
      "kept");
}

TEST_F(StandardFunctionsTest, AComparisonThatContradictsItselfOrFailsLosesNothing) {
  EXPECT_EQ(run("local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() return true end)\n"
                "local sum = 0 for i = 1, 100 do sum = sum + t[i] end return sum"),
            "5050");
  EXPECT_EQ(
      run("local t, n = {}, 0 for i = 1, 100 do t[i] = 101 - i end\n"
          "pcall(table.sort, t, function(a, b) n = n + 1 if n > 300 then error 'x' end return a < b end)\n"
          "local sum = 0 for i = 1, 100 do sum = sum + t[i] end return sum"),
      "5050");
  EXPECT_NE(run("table.sort({ 1, 'a' })").find("attempt to compare"), std::string::npos);
  EXPECT_NE(run("table.sort(1)").find("table expected"), std::string::npos);
  EXPECT_NE(run("table.sort({}, 1)").find("function expected"), std::string::npos);
}

TEST_F(StandardFunctionsTest, ALongSortIsStopped) {
  const std::string fill = "local t = {} for i = 1, 1000000 do t[i] = i * 7919 % 1000003 end\n";
  for (const char* sort : {"table.sort(t)", "table.sort(t, function(a, b) return a < b end)"}) {
    const LuaWatch watch(state_.get(), {.max_instructions = 12'000'000, .max_seconds = 100});
    EXPECT_TRUE(run(fill + sort).starts_with("error: stopped after")) << sort;
  }
}

TEST_F(StandardFunctionsTest, CoroutinesPassValuesBothWays) {
  EXPECT_EQ(
      run("local co = coroutine.create(function(a, b)\n"
          "  local c = coroutine.yield(a + b) local d, e = coroutine.yield(c * 2) return d, e, 'end' end)\n"
          "local out = {}\n"
          "for _, given in ipairs { { 1, 2 }, { 10 }, { 'x', 'y' }, {} } do\n"
          "  local got = { coroutine.resume(co, unpack(given)) }\n"
          "  for i = 1, #got do got[i] = tostring(got[i]) end\n"
          "  out[#out + 1] = table.concat(got, ' ') .. ' (' .. coroutine.status(co) .. ')'\n"
          "end\nreturn table.concat(out, '; ')"),
      "true 3 (suspended); true 20 (suspended); true x y end (dead); false cannot resume dead coroutine "
      "(dead)");
  EXPECT_EQ(run("local next_one = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)\n"
                "return next_one() + next_one() * 10 + next_one() * 100"),
            "321");
  EXPECT_EQ(run("local f = coroutine.wrap(function() local ok, x = pcall(function() return "
                "coroutine.yield(1) end)\n"
                "  return ok and x end)\nf() return f(7)"),
            "7");
}

TEST_F(StandardFunctionsTest, ErrorsOfCoroutinesArriveWhole) {
  EXPECT_EQ(run("local co = coroutine.create(function() error({ x = 5 }) end)\n"
                "local ok, e = coroutine.resume(co) return tostring(ok) .. e.x .. coroutine.status(co)"),
            "false5dead");
  EXPECT_EQ(run("local ok, e = pcall(coroutine.wrap(function() error({ x = 6 }) end)) return e.x"), "6");
  EXPECT_EQ(run("local co co = coroutine.create(function() return select(2, coroutine.resume(co)) end)\n"
                "return select(2, coroutine.resume(co))"),
            "cannot resume non-suspended coroutine");
  EXPECT_NE(run("coroutine.resume(1)").find("coroutine expected"), std::string::npos);
  EXPECT_NE(run("coroutine.wrap(1)").find("function expected"), std::string::npos);
}

TEST_F(StandardFunctionsTest, RecursionThroughCFunctionsIsAnErrorNotACrash) {
  for (const char* text :
       {"local function f() return coroutine.wrap(f)() end f()",
        "local function f() local _, e = coroutine.resume(coroutine.create(f)) error(e, 0) end f()",
        "local function f() return (ours.gsub('x', '.', f)) end f()",
        "local t = setmetatable({}, { __index = function(t) return (ours.gsub('x', '.', t)) end })\n"
        "ours.gsub('x', '.', t)",
        "local function f() table.sort({ 1, 2, 3 }, f) return true end f()",
        "local m = {} m.__lt = function(a, b) table.sort({ a, b }) return true end\n"
        "table.sort({ setmetatable({}, m), setmetatable({}, m) })"}) {
    const std::string said = run(text);
    EXPECT_TRUE(said.find("nested too deep") != std::string::npos ||
                said.find("stack overflow") != std::string::npos)
        << text << "\n"
        << said;
    EXPECT_EQ(run("return 1"), "1");
  }
}

}  // namespace
}  // namespace tycho
