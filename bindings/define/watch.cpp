// The hook that ends Lua code on Ctrl-C and past its limits.
#include "bindings/define/watch.h"

#include <atomic>
#include <string>
#include <string_view>

#include "bindings/define/embedded.h"
#include "bindings/define/lua_util.h"

namespace tycho {
namespace {

constexpr int kTick = 10'000;    // instructions between looks at the clock
constexpr int kMaxDepth = 1000;  // calls within calls; Lua's own end, past 10000, leaves no room to say where

// A signal handler may touch nothing but these and lua_sethook.
std::atomic<lua_State*> g_watched{nullptr};
std::atomic<bool> g_interrupted{false};
LuaWatch* g_watch = nullptr;

/// What people wrote has any other name: a file ("@x.lua"), an argument, a line of attach, a text given to
/// load.
bool is_host_chunk(std::string_view source) {
  return source.starts_with(kHostChunk) || source.starts_with("=[C]");
}

std::string chunk_name(const lua_Debug& frame) {
  const bool is_named = frame.source[0] == '@' || frame.source[0] == '=';
  return is_named ? frame.source + 1 : frame.short_src;
}

}  // namespace

LuaWatch::LuaWatch(lua_State* L, const LuaLimits& limits)
    : outer_(g_watch), state_(L), limits_(limits), start_(std::chrono::steady_clock::now()) {
  g_watch = this;
  if (outer_ == nullptr) g_interrupted = false;
  set_hook(L);
  g_watched = L;
}

// The hook stays when the watch is over, and then does nothing: to set one costs more than a small callback.
void LuaWatch::set_hook(lua_State* L) {
  if (lua_gethook(L) == &on_tick && lua_gethookmask(L) == LUA_MASKCOUNT && lua_gethookcount(L) == kTick)
    return;
  lua_sethook(L, &on_tick, LUA_MASKCOUNT, kTick);
}

LuaWatch::~LuaWatch() {
  g_watched = outer_ != nullptr ? outer_->state_ : nullptr;
  g_watch = outer_;
  if (outer_ == nullptr) return;
  set_hook(outer_->state_);
  if (g_interrupted) interrupt();
}

bool LuaWatch::interrupt() {
  lua_State* const L = g_watched;
  if (L == nullptr) return false;
  g_interrupted = true;
  lua_sethook(L, &on_tick, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
  return true;
}

void LuaWatch::on_tick(lua_State* L, lua_Debug* frame) {
  if (g_watch == nullptr) return set_hook(L);
  LuaWatch& watch = *g_watch;
  const bool counted = frame->event == LUA_HOOKCOUNT;
  if (counted && !g_interrupted) watch.instructions_ += kTick;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - watch.start_;
  const bool too_many = watch.instructions_ > watch.limits_.max_instructions;
  const bool too_long = elapsed.count() > watch.limits_.max_seconds;
  const bool too_big = int64_t{lua_gc(L, LUA_GCCOUNT, 0)} * 1024 > watch.limits_.max_bytes;
  lua_Debug deepest;
  const bool too_deep = counted && lua_getstack(L, kMaxDepth, &deepest) != 0;
  const bool interrupted = g_interrupted && elapsed.count() >= watch.limits_.grace_s;
  if (!interrupted && !too_many && !too_long && !too_big && !too_deep) return;
  lua_sethook(L, &on_tick, LUA_MASKCOUNT, 1);  // again at once, should recipe code swallow the error
  lua_getinfo(L, "Sl", frame);
  if (is_host_chunk(frame->source) || frame->currentline < 0) return;
  {
    const std::string where = fmt::format("{}:{}", chunk_name(*frame), frame->currentline);
    if (watch.first_stop_.empty()) watch.first_stop_ = where;
    const std::string again =
        watch.first_stop_ == where ? "" : fmt::format(" (first at {})", watch.first_stop_);
    if (interrupted) {
      push_error(L, "interrupted at " + where, ExitCode::kInterrupted);
    } else if (too_big) {
      push_error(
          L, fmt::format("stopped: Lua holds more than {} MiB here{}", watch.limits_.max_bytes >> 20, again),
          ExitCode::kRecipe);
    } else if (too_deep && !too_many && !too_long) {
      push_error(
          L, fmt::format("stopped: calls more than {} deep: is there a recursion without end?", kMaxDepth),
          ExitCode::kRecipe);
    } else {
      push_error(
          L,
          fmt::format("stopped after {} million instructions in {:.1f} s: is there a loop without end?{}",
                      watch.instructions_ / 1'000'000, elapsed.count(), again),
          ExitCode::kRecipe);
    }
  }
  lua_error(L);
}

int call_limited(lua_State* L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  LuaLimits limits;
  limits.max_instructions = static_cast<int64_t>(luaL_checknumber(L, 2));
  limits.max_seconds = luaL_checknumber(L, 3);
  lua_settop(L, 1);
  int status = 0;
  {
    const LuaWatch watch(L, limits);
    status = lua_pcall(L, 0, LUA_MULTRET, 0);
  }
  lua_pushboolean(L, status == 0 ? 1 : 0);
  lua_insert(L, 1);
  return lua_gettop(L);
}

}  // namespace tycho
