// The hook that ends Lua code on Ctrl-C and past its limits.
#include "bindings/define/watch.h"

#include <time.h>

#include <atomic>
#include <string>
#include <string_view>

#include "bindings/define/embedded.h"
#include "bindings/define/lua_util.h"
#include "trainer/base/seconds_since.h"

namespace tycho {
namespace {

constexpr int kTick = 10'000;  // instructions between looks at the clock
constexpr int kHostTick =
    100;  // the same while the host reports a stop: recipe code must not get far in between
constexpr int kMaxDepth = 1000;  // calls within calls; Lua's own end, past 10000, leaves no room to say where
constexpr double kReport_s = 2;  // the host may take to report a stop
constexpr int kMaxFrames = 8;    // of recipe code in a warning

// A signal handler may only touch these and call lua_sethook.
std::atomic<lua_State*> g_watched{nullptr};
std::atomic<bool> g_interrupted{false};
LuaWatch* g_watch = nullptr;
WatchedCode* g_code = nullptr;  // code of g_watch

/// Returns true for chunks of the host. Users' code has other names: a file ("@x.lua"), an argument, a line
/// of attach, a text given to load.
bool is_host_chunk(std::string_view source) {
  return source.starts_with(kHostChunk) || source.starts_with("=[C]");
}

std::string place_of(const lua_Debug& frame) {
  const bool is_named = frame.source[0] == '@' || frame.source[0] == '=';
  return fmt::format("{}:{}", is_named ? frame.source + 1 : frame.short_src, frame.currentline);
}

/// Finds the next frame of users' code from a level on, and sets `level` to the one after it. Returns false
/// when there is none.
bool next_frame_of_people(lua_State* L, int& level, lua_Debug& frame) {
  while (lua_getstack(L, level++, &frame) != 0) {
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline >= 0 && !is_host_chunk(frame.source)) return true;
  }
  return false;
}

bool is_called_by_host(lua_State* L) {
  lua_Debug frame;
  for (int level = 1; lua_getstack(L, level, &frame) != 0; ++level) {
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline >= 0) return is_host_chunk(frame.source);
  }
  return true;
}

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void hook_every(lua_State* L, lua_Hook hook, int mask, int count) {
  if (lua_gethook(L) != hook || lua_gethookmask(L) != mask || lua_gethookcount(L) != count)
    lua_sethook(L, hook, mask, count);
}

int raise_nothing(lua_State* L) {
  lua_pushnil(L);
  return lua_error(L);
}

/// Ends the running hook. LuaJIT runs no hook while one is active, and calls the message handler of an error
/// raised by a hook before the hook ends: xpcall(f, f) would loop there forever. A coroutine that fails ends
/// the hook at once.
void leave_hook(lua_State* L) {
  lua_State* const failing = lua_newthread(L);
  lua_pushcfunction(failing, raise_nothing);
  lua_resume(failing, 0);
  lua_pop(L, 1);
}

}  // namespace

LuaWatch::LuaWatch(lua_State* L, const LuaLimits& limits)
    : outer_(g_watch),
      state_(L),
      limits_(limits),
      start_cpu_s_(limits.max_is_wall_clock ? 0 : thread_cpu_s()) {
  code_.max_wall_s = limits.max_is_wall_clock ? limits.max_seconds : kNever_s;
  code_.max_thread_cpu_s = limits.max_is_wall_clock ? kNever_s : start_cpu_s_ + limits.max_seconds;
  code_.warn_s = limits.warn_s;
  code_.exit_s = limits.exit_s;
  code_.what = limits.what;
  code_.interrupted = &g_interrupted;
  if (outer_ == nullptr) g_interrupted = false;
  g_watch = this;
  g_code = &code_;
  set_hook(L);
  g_watched = L;
  set_nudge(&LuaWatch::look_soon);
  set_watched(&code_);
}

// The hook stays installed after the watch and then does nothing: setting one costs more than a small
// callback.
void LuaWatch::set_hook(lua_State* L) { hook_every(L, &on_tick, LUA_MASKCOUNT, kTick); }

double LuaWatch::spent_s() const {
  return limits_.max_is_wall_clock ? seconds_since(code_.start) : thread_cpu_s() - start_cpu_s_;
}

LuaWatch::~LuaWatch() {
  g_watched = outer_ != nullptr ? outer_->state_ : nullptr;
  g_watch = outer_;
  g_code = outer_ != nullptr ? &outer_->code_ : nullptr;
  set_watched(g_code);
  if (outer_ == nullptr) return;
  set_hook(outer_->state_);
  if (g_interrupted) interrupt();
}

void LuaWatch::look_soon() {
  lua_State* const L = g_watched;
  if (L != nullptr) lua_sethook(L, &on_tick, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

bool LuaWatch::interrupt() {
  if (g_watched == nullptr) return false;
  g_interrupted = true;
  look_soon();
  return true;
}

LuaWatch::EngineCall::EngineCall() : code_(g_code) {
  // Only this thread writes it.
  if (code_ != nullptr) code_->engine_calls.store(code_->engine_calls.load() + 1, std::memory_order_release);
}

LuaWatch::EngineCall::~EngineCall() {
  if (code_ != nullptr) code_->engine_calls.store(code_->engine_calls.load() - 1, std::memory_order_release);
}

LuaWatch::Pause::Pause() { set_watched(nullptr); }

LuaWatch::Pause::~Pause() {
  const double paused_s = seconds_since(start_);
  for (LuaWatch* watch = g_watch; watch != nullptr; watch = watch->outer_) {
    if (watch->limits_.max_is_wall_clock) watch->limits_.max_seconds += paused_s;
    watch->code_.max_wall_s += paused_s;
    watch->code_.warn_s += paused_s;
  }
  set_watched(g_code);
}

// Garbage does not count: another call may have left it, or an operator.
bool LuaWatch::uses_too_much(lua_State* L) const {
  const auto bytes = [L] { return int64_t{lua_gc(L, LUA_GCCOUNT, 0)} * 1024; };
  if (bytes() <= limits_.max_bytes) return false;
  lua_gc(L, LUA_GCCOLLECT, 0);
  return bytes() > limits_.max_bytes;
}

LuaWatch::Limit LuaWatch::passed(lua_State* L, bool too_deep) {
  if (stopped_by_ != Limit::kNone) return stopped_by_;
  if (g_interrupted && seconds_since(code_.start) >= limits_.grace_s)
    return stopped_by_ = Limit::kInterrupted;
  if (instructions_ > limits_.max_instructions || spent_s() > limits_.max_seconds)
    return stopped_by_ = Limit::kTime;
  if (uses_too_much(L)) return Limit::kBytes;
  return too_deep ? Limit::kDepth : Limit::kNone;
}

bool LuaWatch::may_report() const { return seconds_since(code_.start) < stopped_s_ + kReport_s; }

bool LuaWatch::begin_report(Limit limit) {
  if (limit != reported_) stopped_s_ = seconds_since(code_.start);
  reported_ = limit;
  return may_report();
}

void LuaWatch::on_tick(lua_State* L, lua_Debug* frame) {
  if (g_watch == nullptr) return set_hook(L);
  LuaWatch& watch = *g_watch;
  const bool counted = frame->event == LUA_HOOKCOUNT;
  if (counted && !g_interrupted) watch.instructions_ += lua_gethookcount(L);
  if (watch.code_.wants_warning.exchange(false)) watch.warn(L);
  lua_getinfo(L, "Sl", frame);
  const bool is_of_host = is_host_chunk(frame->source) || frame->currentline < 0;
  if (is_of_host && watch.may_report()) return hook_every(L, &on_tick, LUA_MASKCOUNT, kHostTick);
  lua_Debug deepest;
  const bool too_deep = counted && lua_getstack(L, kMaxDepth, &deepest) != 0;
  const Limit limit = watch.passed(L, too_deep);
  if (limit == Limit::kNone) {
    if (!g_interrupted) set_hook(L);
    return;
  }
  if (is_of_host && watch.begin_report(limit)) return hook_every(L, &on_tick, LUA_MASKCOUNT, kHostTick);
  // Again at the next instruction, in case recipe code swallows the error.
  hook_every(L, &on_tick, LUA_MASKCOUNT, 1);
  int level = 0;
  lua_Debug of_people;
  const bool found = next_frame_of_people(L, level, of_people);
  watch.push_stop(L, limit, found ? &of_people : nullptr);
  leave_hook(L);
  lua_error(L);
}

void LuaWatch::spend(lua_State* L, int64_t steps) {
  if (g_watch == nullptr) return;
  g_watch->instructions_ += steps;
  const Limit limit = g_watch->passed(L, false);
  if (limit == Limit::kNone) return;
  hook_every(L, &on_tick, LUA_MASKCOUNT, 1);
  // The host itself is spared from the first stop on, when it reports.
  const bool stopped_before = g_watch->was_stopped_;
  if (stopped_before && is_called_by_host(L) && g_watch->begin_report(limit)) return;
  // A tail call leaves no frame of its caller: what the host seems to call may be called by a recipe.
  int level = 1;
  lua_Debug of_people;
  const bool found = next_frame_of_people(L, level, of_people);
  g_watch->push_stop(L, limit, found ? &of_people : nullptr);
  lua_error(L);
}

void LuaWatch::warn(lua_State* L) {
  if (limits_.warn == nullptr) return;
  try {
    std::string text =
        fmt::format("{} has been running for {:.0f} s", limits_.what, seconds_since(code_.start));
    int level = 0;
    lua_Debug frame;
    for (int i = 0; i < kMaxFrames && next_frame_of_people(L, level, frame); ++i)
      text += fmt::format("{}{}", i == 0 ? ", now at " : ", called from ", place_of(frame));
    (*limits_.warn)(text);
  } catch (const std::exception&) {
    // A warning that cannot be written changes nothing for the code that runs.
  }
}

/// `frame` is the stopped frame of users' code; null when only the host's is visible.
void LuaWatch::push_stop(lua_State* L, Limit limit, const lua_Debug* frame) {
  const std::string where = frame != nullptr ? place_of(*frame) : "";
  if (!was_stopped_) first_stop_ = where;
  was_stopped_ = true;
  begin_report(limit);
  const std::string again =
      first_stop_.empty() || first_stop_ == where ? "" : fmt::format(" (first at {})", first_stop_);
  const auto code = limit == Limit::kInterrupted ? ExitCode::kInterrupted : ExitCode::kRecipe;
  std::string message;
  switch (limit) {
    case Limit::kInterrupted: message = where.empty() ? "interrupted" : "interrupted at " + where; break;
    case Limit::kBytes:
      message = fmt::format("stopped: Lua uses more than {} MiB here{}{}", limits_.max_bytes >> 20,
                            limits_.bytes_hint, again);
      break;
    case Limit::kDepth:
      message = fmt::format("stopped: more than {} nested calls: is there an endless recursion?", kMaxDepth);
      break;
    default:
      message = fmt::format("stopped after {} million instructions in {:.1f} s: is there an endless loop?{}",
                            instructions_ / 1'000'000, spent_s(), again);
  }
  push_error(L, message, code);
}

int call_limited(lua_State* L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  LuaLimits limits;
  limits.max_instructions = static_cast<int64_t>(luaL_checknumber(L, 2));
  limits.max_seconds = luaL_checknumber(L, 3);
  lua_settop(L, 1);
  int status = 0;
  {
    const LuaWatch::Pause pause;  // of the code that calls it
    const LuaWatch watch(L, limits);
    status = lua_pcall(L, 0, LUA_MULTRET, 0);
  }
  lua_pushboolean(L, status == 0 ? 1 : 0);
  lua_insert(L, 1);
  return lua_gettop(L);
}

}  // namespace tycho
