// What the program provides to the REPL's Lua: printing, drawing, files, the shell, and the engine.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "bindings/run/objects.h"
#include "bindings/run/session_objects.h"
#include "host/repl/history.h"
#include "host/repl/output.h"
#include "trainer/base/json.h"
#include "trainer/session/session.h"

namespace tycho {

/// Outlives the Lua state.
struct ReplHost {
  Objects& objects;
  ReplHistory& history;
  ReplOutput& output;
  bool reads;  // entries: one rank does, and it alone writes files and runs the shell
  bool apart;  // as PromptSeat's: what the shell writes goes to `output`
  /// Opens the engine's session for a finished recipe, as tycho.session gives it.
  std::function<std::unique_ptr<TrainingSession>(const Json& resolved)> open;
  /// What rank 0 decides, on all ranks that run the entry.
  std::function<bool(bool mine)> decide;
  /// What the newest callback that failed left (LuaCallbacks::take_failure).
  std::function<Json()> take_failure;
  std::shared_ptr<SessionRef> session = nullptr;  // none before build(r)

  bool is_open() const { return session != nullptr && session->session != nullptr; }
  /// Makes an open session the REPL's and pushes its objects (push_session).
  void adopt(lua_State* L, std::unique_ptr<TrainingSession> opened);
};

/// Makes require "tycho.repl.host" give the functions.
void open_repl_host(lua_State* L, ReplHost& host);

}  // namespace tycho
