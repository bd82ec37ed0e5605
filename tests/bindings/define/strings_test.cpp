// string.find, match, gmatch and gsub against those of LuaJIT, and that they can be ended.
#include "bindings/define/strings.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "bindings/define/lua_util.h"
#include "bindings/define/watch.h"

namespace tycho {
namespace {

class StringsTest : public testing::Test {
 protected:
  StringsTest() {
    push_strings(state_.get());
    lua_setglobal(state_.get(), "ours");
  }
  /// Runs Lua code; what it returns as text, or raises.
  std::string run(const std::string& code) {
    lua_State* L = state_.get();
    EXPECT_EQ(luaL_loadbuffer(L, code.data(), code.size(), "@x.lua"), 0) << lua_tostring(L, -1);
    try {
      call_lua(L, 0, 1);
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
    const char* const text = lua_tostring(L, -1);
    return text != nullptr ? text : "";
  }
  LuaState state_;
  ExitCode code_ = ExitCode::kOk;
};

// Draws patterns from pieces, whole and broken ones, and texts of few letters, so that many match.
const char* const kCompare = R"lua(
local seed = 20261122
local function draw(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return math.floor(seed / 65536) % n + 1
end
local function one_of(list) return list[draw(#list)] end

local kClasses = { "a", "b", "c", ".", "%a", "%d", "%s", "%w", "%l", "%u", "%p", "%x", "%c", "%g", "%z", "%A", "%D", "%S", "%W",
  "%L", "%U", "%P", "%X", "%C", "%G", "%Z", "%.", "%%", "%]", "%-", "%y", "%Y", "[abc]", "[^a]", "[a-c]", "[^a-b]", "[%a_]",
  "[%d-]", "[]]", "[^]]", "[]-a]", "[-a]", "[a-]", "[%]]", "[a%-c]", "[%w%s]", "[^%s]", "[c-a]", "[.]", "[$^]", "[a-%%]", "[%a-z]",
  "[+--]", "[^%W]", "[[]", "-", "]", "^", "$", "*", " " }
local kWhole = { "()", "%1", "%2", "%b()", "%bab", "%baa", "%f[a]", "%f[%W]", "%f[^a]", "%f[%z]", "%f[%a]" }
local kBroken = { "(", ")", "%", "[", "[^", "[a", "[]", "[%", "[a-", "[%a", "%b", "%ba", "%f", "%fa", "%f[", "%0", "%3", "%9", "(()" }
local kLetters = { "a", "b", "c", "a", "b", "A", "1", " ", "(", ")", ".", "-", "]", "$", "%", "_", "\n", "\0", "\200", "^" }

local function text(most)
  local out = {}
  for i = 1, draw(most + 1) - 1 do out[i] = one_of(kLetters) end
  return table.concat(out)
end

local function pattern(depth)
  local out = {}
  for i = 1, draw(4) do
    local kind = draw(40)
    if kind <= 26 then
      out[i] = one_of(kClasses) .. one_of { "", "", "", "*", "+", "-", "?", "**" }
    elseif kind <= 32 and depth < 3 then
      out[i] = "(" .. pattern(depth + 1) .. ")"
    elseif kind <= 38 then
      out[i] = one_of(kWhole) .. one_of { "", "", "", "*", "?" }
    else
      out[i] = one_of(kBroken)
    end
  end
  return table.concat(out)
end

local function whole_pattern()
  return one_of { "", "", "", "^" } .. pattern(0) .. one_of { "", "", "", "$" }
end

local function show(...)
  local out = {}
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    out[i] = type(x) == "string" and ("%q"):format(x) or tostring(x)
  end
  return table.concat(out, ", ")
end

-- The place before a message is that of the caller, here below.
local function outcome(fn, ...)
  return (show(pcall(fn, ...)):gsub("x%.lua:%d+: ", ""))
end

local function all_of(gmatch, s, p)
  local out = {}
  for a, b, c in gmatch(s, p) do
    out[#out + 1] = show(a, b, c)
    if #out > 50 then break end
  end
  return table.concat(out, "; ")
end

local kReplacements = { "x", "", "%0", "<%1>", "%2%1", "%%", "%", "%a", 7,
  { a = "A", b = false, [1] = "one", ab = 12 }, { a = {} }, setmetatable({}, { __index = function(_, k) return "<" .. k .. ">" end }),
  function(a, b) return b end, function(a) return a end, function() end, function() return false end, function() return {} end,
  function(a) error("raised") end }
local kInits = { nil, 1, 2, 5, 100, 0, -1, -3, -100, 2.5 }
local kCounts = { nil, nil, 0, 1, 2, -1, 1.5 }

local function compare(name, p, s, ...)
  local expected, got = outcome(string[name], s, p, ...), outcome(ours[name], s, p, ...)
  if expected == got or expected:find("too complex", 1, true) then return end
  error(("%s(%q, %q, %s): expected %s, got %s"):format(name, s, p, show(...), expected, got))
end

local matched = 0
for i = 1, 30000 do
  local p, s = whole_pattern(), text(14)
  compare("find", p, s, kInits[draw(10)], draw(8) == 1)
  compare("match", p, s, kInits[draw(10)])
  compare("gsub", p, s, one_of(kReplacements), kCounts[draw(7)])
  local expected, got = outcome(all_of, string.gmatch, s, p), outcome(all_of, ours.gmatch, s, p)
  if expected ~= got then error(("gmatch(%q, %q): expected %s, got %s"):format(s, p, expected, got)) end
  local ok, at = pcall(string.find, s, p)
  if ok and at then matched = matched + 1 end
end
return tostring(matched)
)lua";

TEST_F(StringsTest, DoWhatLuaJitsDo) {
  const std::string answer = run(kCompare);
  EXPECT_GT(std::atoi(answer.c_str()), 3000) << answer;
}

TEST_F(StringsTest, LongPatternsAndTextsAreTheSameToo) {
  EXPECT_EQ(
      run("local s = ('ab '):rep(5000)\n"
          "local p = ('a?b?%s?'):rep(20)\n"
          "for name, arguments in pairs { find = { s, p }, gsub = { s, '%w+', '<%0>' }, match = { s, '^(.*) "
          "$' } } do\n"
          "  local a, b = string[name](unpack(arguments))\n  local c, d = ours[name](unpack(arguments))\n"
          "  if a ~= c or b ~= d then return name end\nend\nreturn 'same'"),
      "same");
}

TEST_F(StringsTest, RefuseValuesThatAreNotText) {
  EXPECT_NE(run("ours.find(nil, 'a')").find("string expected"), std::string::npos);
  EXPECT_NE(run("ours.gsub('a', 'a', true)").find("string/function/table expected"), std::string::npos);
  EXPECT_EQ(run("return ours.match(123, '%d')"), "1");
}

const char* const kSlow = "local s = ('a'):rep(30000)\nreturn %s";

TEST_F(StringsTest, EndByTheirLimit) {
  const std::string slow = "('.-'):rep(20) .. 'b'";
  for (const std::string& call :
       {"ours.find(s, " + slow + ")", "ours.match(s, " + slow + ")", "ours.gsub(s, " + slow + ", '')",
        "ours.gmatch(s, " + slow + ")()", "select(2, pcall(ours.find, s, " + slow + ")).message"}) {
    const LuaWatch watch(state_.get(), {.max_instructions = 1'000'000});
    std::string code = kSlow;
    code.replace(code.find("%s"), 2, call);
    EXPECT_NE(run(code).find("is there an endless loop?"), std::string::npos) << call;
    EXPECT_EQ(code_, ExitCode::kRecipe);
  }
}

TEST_F(StringsTest, EndByCtrlC) {
  const LuaWatch watch(state_.get(), {.max_instructions = int64_t{1} << 40});
  std::signal(SIGUSR2, [](int) { LuaWatch::interrupt(); });
  std::thread impatient([target = pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pthread_kill(target, SIGUSR2);
  });
  const std::string said =
      run("local s = ('a'):rep(30000) local at = ours.find(s, ('.-'):rep(20) .. 'b')\nreturn at");
  impatient.join();
  EXPECT_EQ(said, "interrupted at x.lua:1");
  EXPECT_EQ(code_, ExitCode::kInterrupted);
}

}  // namespace
}  // namespace tycho
