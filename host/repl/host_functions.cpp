// The functions behind tycho.repl.host.
#include "host/repl/host_functions.h"

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "trainer/base/file_ops.h"
#include "trainer/metrics/format.h"
#include "trainer/plan/plan.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

ReplHost& host_of(lua_State* L) { return *static_cast<ReplHost*>(lua_touserdata(L, lua_upvalueindex(1))); }

int push_text(lua_State* L, const std::string& text) {
  return lua_pushlstring(L, text.data(), text.size()), 1;
}

winsize screen_size() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 5 || size.ws_col < 24)
    size.ws_row = 24, size.ws_col = 80;
  return size;
}

/// print(text)
int print(lua_State* L) {
  return protect(L, [&] {
    host_of(L).output.print(string_argument(L, 1));
    return 0;
  });
}

/// now() -> seconds
int now(lua_State* L) { return lua_pushnumber(L, monotonic_seconds()), 1; }

/// decide(mine) -> rank 0's value, on all ranks that run the entry, since their clocks differ
int decide(lua_State* L) {
  return protect(L, [&] { return lua_pushboolean(L, host_of(L).decide(lua_toboolean(L, 1) != 0)), 1; });
}

/// screen() -> { rows, columns }
int screen(lua_State* L) {
  const winsize size = screen_size();
  push_json(L, {{"rows", size.ws_row}, {"columns", size.ws_col}});
  return 1;
}

/// build(resolved) -> table of objects
int build(lua_State* L) {
  return protect(L, [&] {
    ReplHost& host = host_of(L);
    if (host.is_open())
      throw ScriptError("E_USAGE", "build: a run is already open",
                        "trainer:close() closes it without saving");
    host.output.draw("  opening the run ...");
    host.adopt(L, host.open(read_json(L, 1)));
    host.output.clear();
    return 1;
  });
}

/// hash(tree) -> text
int hash(lua_State* L) {
  return protect(
      L, [&] { return push_text(L, config_hash(config_to_json(read_config_or_fail(read_json(L, 1))))); });
}

/// plan_text(tree) -> text
int plan_text_of(lua_State* L) {
  return protect(L, [&] {
    const TrainConfig config = read_config_or_fail(read_json(L, 1));
    return push_text(L, plan_text(make_plan(config), config));
  });
}

/// Runs a command without input and passes on its output as it arrives.
int run_captured(const std::string& command, ReplOutput& output) {
  FILE* pipe = popen(("{ " + command + "\n} </dev/null 2>&1").c_str(), "re");
  if (pipe == nullptr) fail(ExitCode::kFailure, "[repl] cannot run {}", command);
  char line[4096];
  while (std::fgets(line, sizeof line, pipe) != nullptr) output.print(line);
  return pclose(pipe);
}

/// shell(command) -> exit status
int shell(lua_State* L) {
  return protect(L, [&] {
    std::fflush(stdout);
    ReplHost& host = host_of(L);
    const std::string command = string_argument(L, 1);
    const int status = !host.reads  ? 0
                       : host.apart ? run_captured(command, host.output)
                                    : std::system(command.c_str());
    lua_pushinteger(L, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 1;
  });
}

/// metrics_path() -> the record of the open run
int metrics_path(lua_State* L) {
  return protect(L, [&] {
    if (!host_of(L).is_open())
      throw ScriptError("E_USAGE", "plot: no run is open, so there is no record to plot",
                        "trainer = build(r)");
    return push_text(L, host_of(L).session->session->facts().run.run_dir + "/metrics.jsonl");
  });
}

/// files(beginning) -> paths with this beginning
int files(lua_State* L) {
  return protect(L, [&] {
    const std::string typed = string_argument(L, 1);
    const size_t slash = typed.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
      const std::string path = folder + entry.path().filename().string();
      if (path.starts_with(typed)) found.push_back(entry.is_directory(ignored) ? path + "/" : path);
    }
    std::sort(found.begin(), found.end());
    push_json(L, found);
    return 1;
  });
}

/// write_new_file(path, text) -> "" or why not
int write_new_file(lua_State* L) {
  return protect(L, [&] {
    const std::string path = string_argument(L, 1);
    if (!host_of(L).reads) return push_text(L, "");
    if (fs::exists(path)) return push_text(L, path + " already exists: choose another name");
    try {
      write_file_atomically(real_files(), path, string_argument(L, 2));
    } catch (const Error& error) {
      return push_text(L, error.what());
    }
    return push_text(L, "");
  });
}

/// history(part) -> text
int history(lua_State* L) {
  return protect(L, [&] { return push_text(L, host_of(L).history.matching(string_argument(L, 1))); });
}

/// class_of(value) -> name | nil
int class_of(lua_State* L) {
  const Class* found = lua_gettop(L) > 0 ? Objects::class_of(L, 1) : nullptr;
  lua_pushstring(L, found != nullptr ? found->name : nullptr);
  return 1;
}

/// class_help(class, member) -> text, "" for none
int class_help(lua_State* L) {
  return protect(L, [&] {
    const std::string name = string_argument(L, 1), member = string_argument(L, 2);
    for (const Class* one : session_classes())
      if (name == one->name) return push_text(L, member.empty() ? help_text(*one) : help_text(*one, member));
    return push_text(L, "");
  });
}

/// param_names() -> list
int param_names(lua_State* L) {
  return protect(L, [&] {
    Json names = Json::array();
    if (host_of(L).is_open())
      for (const ParamInfo& param : host_of(L).session->session->params()) names.push_back(param.name);
    push_json(L, names);
    return 1;
  });
}

/// memory() -> { lua, tensors, handles }
int memory(lua_State* L) {
  const Objects& objects = host_of(L).objects;
  push_json(L, {{"lua", int64_t{lua_gc(L, LUA_GCCOUNT, 0)} * 1024},
                {"tensors", objects.external_bytes()},
                {"handles", objects.live_handles()}});
  return 1;
}

/// take_failure() -> { frames, ctx } | NULL
int take_failure(lua_State* L) {
  return protect(L, [&] { return push_json(L, host_of(L).take_failure()), 1; });
}

TrainingSession& open_session_of(lua_State* L) {
  if (!host_of(L).is_open())
    throw ScriptError("E_USAGE", "no run is open, so there is nothing to profile", "trainer = build(r)");
  return *host_of(L).session->session;
}

/// profile_begin()
int profile_begin(lua_State* L) {
  return protect(L, [&] { return open_session_of(L).profile_begin(), 0; });
}

/// profile_end() -> { path, ranges = { { name, calls, seconds } } }
int profile_end(lua_State* L) {
  return protect(L, [&] { return push_json(L, open_session_of(L).profile_end()), 1; });
}

/// boundary(): called between steps and entries; frees what Lua has dropped and collects a little garbage
int boundary(lua_State* L) {
  lua_gc(L, LUA_GCSTEP, 1);
  host_of(L).objects.drain();
  return 0;
}

int load_host(lua_State* L) {
  const luaL_Reg functions[] = {{"print", print},
                                {"now", now},
                                {"decide", decide},
                                {"screen", screen},
                                {"build", build},
                                {"hash", hash},
                                {"plan_text", plan_text_of},
                                {"shell", shell},
                                {"metrics_path", metrics_path},
                                {"files", files},
                                {"write_new_file", write_new_file},
                                {"history", history},
                                {"class_of", class_of},
                                {"class_help", class_help},
                                {"param_names", param_names},
                                {"memory", memory},
                                {"take_failure", take_failure},
                                {"profile_begin", profile_begin},
                                {"profile_end", profile_end},
                                {"boundary", boundary}};
  lua_newtable(L);
  for (const luaL_Reg& function : functions) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushcclosure(L, function.func, 1);
    lua_setfield(L, -2, function.name);
  }
  push_json(L, describe(session_classes()));
  lua_setfield(L, -2, "classes");
  std::error_code none;
  push_text(L, fs::read_symlink("/proc/self/exe", none).string());
  lua_setfield(L, -2, "program");
  return 1;
}

}  // namespace

void ReplHost::adopt(lua_State* L, std::unique_ptr<TrainingSession> opened) {
  session = std::make_shared<SessionRef>();
  session->session = opened.get();
  session->owned = std::move(opened);
  session->scope =
      std::make_shared<Scope>("the run " + session->session->facts().run.run_name, /*may_act=*/true);
  session->unicode = locale_is_utf8();
  session->writes_files = session->session->facts().rank == 0;
  push_session(L, session);
}

void open_repl_host(lua_State* L, ReplHost& host) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushlightuserdata(L, &host);
  lua_pushcclosure(L, load_host, 1);
  lua_setfield(L, -2, "tycho.repl.host");
  lua_pop(L, 2);
}

}  // namespace tycho
