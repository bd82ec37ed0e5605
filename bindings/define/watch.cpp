// The hook that ends Lua code on Ctrl-C and past its limits.
#include "bindings/define/watch.h"

#include <time.h>

#include <atomic>
#include <string>
#include <string_view>

#include "bindings/define/embedded.h"
#include "bindings/define/lua_util.h"

namespace tycho {
namespace {

constexpr int kTick = 10'000;    // instructions between looks at the clock
constexpr int kMaxDepth = 1000;  // calls within calls; Lua's own end, past 10000, leaves no room to say where

// A signal handler may only touch these and call lua_sethook.
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

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

LuaWatch::LuaWatch(lua_State* L, const LuaLimits& limits)
    : outer_(g_watch),
      state_(L),
      limits_(limits),
      start_(std::chrono::steady_clock::now()),
      start_cpu_s_(limits.max_is_wall_clock ? 0 : thread_cpu_s()) {
  g_watch = this;
  if (outer_ == nullptr) g_interrupted = false;
  set_hook(L);
  g_watched = L;
}

// The hook stays installed after the watch and then does nothing: setting one costs more than a small
// callback.
void LuaWatch::set_hook(lua_State* L) {
  if (lua_gethook(L) == &on_tick && lua_gethookmask(L) == LUA_MASKCOUNT && lua_gethookcount(L) == kTick)
    return;
  lua_sethook(L, &on_tick, LUA_MASKCOUNT, kTick);
}

// Fire again immediately in case recipe code swallows the error.
void LuaWatch::tick_always(lua_State* L) { lua_sethook(L, &on_tick, LUA_MASKCOUNT, 1); }

double LuaWatch::spent_s() const {
  return limits_.max_is_wall_clock ? seconds_since(start_) : thread_cpu_s() - start_cpu_s_;
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

LuaWatch::Limit LuaWatch::passed(lua_State* L, bool too_deep) const {
  if (g_interrupted && seconds_since(start_) >= limits_.grace_s) return Limit::kInterrupted;
  if (int64_t{lua_gc(L, LUA_GCCOUNT, 0)} * 1024 > limits_.max_bytes) return Limit::kBytes;
  if (instructions_ > limits_.max_instructions || spent_s() > limits_.max_seconds) return Limit::kTime;
  return too_deep ? Limit::kDepth : Limit::kNone;
}

void LuaWatch::on_tick(lua_State* L, lua_Debug* frame) {
  if (g_watch == nullptr) return set_hook(L);
  const bool counted = frame->event == LUA_HOOKCOUNT;
  if (counted && !g_interrupted) g_watch->instructions_ += kTick;
  lua_Debug deepest;
  const bool too_deep = counted && lua_getstack(L, kMaxDepth, &deepest) != 0;
  const Limit limit = g_watch->passed(L, too_deep);
  if (limit == Limit::kNone) return;
  tick_always(L);
  lua_getinfo(L, "Sl", frame);
  if (is_host_chunk(frame->source) || frame->currentline < 0) return;
  g_watch->raise(L, limit, frame);
}

void LuaWatch::spend(lua_State* L, int64_t steps) {
  if (g_watch == nullptr) return;
  g_watch->instructions_ += steps;
  const Limit limit = g_watch->passed(L, false);
  if (limit == Limit::kNone) return;
  tick_always(L);
  // A tail call leaves no frame of its caller: what the host seems to call may be called by a recipe. The
  // host itself is spared from the first stop on, when it reports.
  const bool stopped_before = !g_watch->first_stop_.empty();
  lua_Debug frame;
  bool is_host = false;
  for (int level = 1; lua_getstack(L, level, &frame) != 0; ++level) {
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline < 0) continue;
    is_host |= is_host_chunk(frame.source);
    if (is_host && stopped_before) return;
    if (!is_host_chunk(frame.source)) return g_watch->raise(L, limit, &frame);
  }
  if (!stopped_before) g_watch->raise(L, limit, nullptr);
}

void LuaWatch::raise(lua_State* L, Limit limit, const lua_Debug* frame) {
  {
    const std::string where =
        frame != nullptr ? fmt::format("{}:{}", chunk_name(*frame), frame->currentline) : "a tail call";
    if (first_stop_.empty()) first_stop_ = where;
    const std::string again = first_stop_ == where ? "" : fmt::format(" (first at {})", first_stop_);
    const auto code = limit == Limit::kInterrupted ? ExitCode::kInterrupted : ExitCode::kRecipe;
    std::string message;
    switch (limit) {
      case Limit::kInterrupted: message = "interrupted at " + where; break;
      case Limit::kBytes:
        message = fmt::format("stopped: Lua uses more than {} MiB here{}", limits_.max_bytes >> 20, again);
        break;
      case Limit::kDepth:
        message =
            fmt::format("stopped: more than {} nested calls: is there an endless recursion?", kMaxDepth);
        break;
      default:
        message =
            fmt::format("stopped after {} million instructions in {:.1f} s: is there an endless loop?{}",
                        instructions_ / 1'000'000, spent_s(), again);
    }
    push_error(L, message, code);
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
