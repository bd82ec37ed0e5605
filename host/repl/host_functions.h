// Functions that the program provides to the REPL's Lua: printing, drawing, files, the shell, the engine.
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
  bool reads;  // true on the rank that reads entries, which alone writes files and runs the shell
  bool apart;  // see PromptSeat::apart; output of the shell then goes to `output`
  /// Opens the engine's session for a finished recipe in the form of tycho.session.
  std::function<std::unique_ptr<TrainingSession>(const Json& resolved)> open;
  /// Returns rank 0's value on all ranks that run the entry.
  std::function<bool(bool mine)> decide;
  /// Returns the state that the newest failed callback left (LuaCallbacks::take_failure).
  std::function<Json()> take_failure;
  std::shared_ptr<SessionRef> session = nullptr;  // null before build(r)

  bool is_open() const { return session != nullptr && session->session != nullptr; }
  /// Makes an open session the REPL's and pushes its objects (push_session).
  void adopt(lua_State* L, std::unique_ptr<TrainingSession> opened);
};

/// Registers the functions as the module "tycho.repl.host".
void open_repl_host(lua_State* L, ReplHost& host);

}  // namespace tycho
