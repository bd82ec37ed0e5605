// The local part of a prompt whose entries run in another process.
#include "host/repl/remote_prompt.h"

#include "bindings/define/native.h"
#include "bindings/define/watch.h"
#include "bindings/run/drawing.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr LuaLimits kUnlimited = {
    .max_instructions = int64_t{1} << 62, .max_seconds = 1e18, .exit_s = kNever_s};
constexpr const char* kReplModule = "tycho.repl";

std::unique_ptr<TrainingSession> refuse_build(const Json&) {
  fail(ExitCode::kUsage,
       "[attach] the run is already built: its objects are ctx, model, opt, sched, data, ckpt, mem");
}

}  // namespace

RemotePrompt::RemotePrompt(bool may_command)
    : history_(""),
      output_([](std::string_view) {}, /*redraws=*/false),
      host_{objects_,
            history_,
            output_,
            /*reads=*/true,
            /*apart=*/true,
            refuse_build,
            [](bool mine) { return mine; },
            [] { return Json(); }} {
  lua_State* L = state_.get();
  objects_.attach(L);
  open_library(L);
  open_drawing(L);
  open_repl_host(L, host_);
  const LuaWatch watch(L, kUnlimited);
  lua_getglobal(L, "require");
  lua_pushstring(L, kReplModule);
  call_lua(L, 1, 1);
  lua_getfield(L, -1, "new");
  Json classes = {{"ctx", may_command ? "control_ctx" : "observe_ctx"}};
  for (const char* name : {"model", "opt", "sched", "data", "ckpt", "log", "mem", "profile", "cmd"})
    classes[name] = name;  // not the recipe's keys of these names: those are r.model
  push_json(L, {{"arguments", Json::array()},
                {"interactive", false},
                {"num_ranks", 1},
                {"apart", true},
                {"classes", classes}});
  call_lua(L, 1, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, kReplModule);
  lua_pop(L, 1);
}

void RemotePrompt::call(const char* method, const std::string& text, int num_results) {
  lua_State* L = state_.get();
  const LuaWatch watch(L, kUnlimited);
  lua_getfield(L, LUA_REGISTRYINDEX, kReplModule);
  lua_getfield(L, -1, method);
  lua_insert(L, -2);
  lua_pushlstring(L, text.data(), text.size());
  call_lua(L, 2, num_results);
}

std::string RemotePrompt::help(const std::string& name) {
  call("help", name, 1);
  std::string page = lua_tostring(state_.get(), -1);
  lua_pop(state_.get(), 1);
  return page;
}

bool RemotePrompt::is_incomplete(const std::string& text) {
  call("is_incomplete", text, 1);
  const bool incomplete = lua_toboolean(state_.get(), -1) != 0;
  lua_pop(state_.get(), 1);
  return incomplete;
}

Completions RemotePrompt::complete(const std::string& line) {
  lua_State* L = state_.get();
  Completions found;
  try {
    call("complete", line, 2);
    if (lua_isstring(L, -1) != 0) found.hint = lua_tostring(L, -1);
    lua_pop(L, 1);
    found.words = read_json(L, lua_gettop(L)).get<std::vector<std::string>>();
  } catch (const std::exception&) {  // tab on something odd offers nothing
  }
  lua_settop(L, 0);
  return found;
}

}  // namespace tycho
