// The recipe's functions while its run trains: callbacks and schedules whose code is Lua.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "bindings/define/lua_util.h"
#include "bindings/define/recipe.h"
#include "bindings/run/class.h"
#include "bindings/run/debug_terminal.h"
#include "bindings/run/objects.h"
#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/recipe/callbacks.h"
#include "trainer/session/callback_source.h"

namespace tycho {

struct SessionRef;
struct CommandQueue;

/// The arguments of the running call of a callback.
struct CallbackContext : std::enable_shared_from_this<CallbackContext> {
  const EventInfo* info = nullptr;
  CallbackPort* port = nullptr;
  std::shared_ptr<SessionRef> session;
  std::shared_ptr<CommandQueue> commands;  // adds to the port
};

/// The classes of ctx by kind, and of ctx.dist.
const Class& observe_ctx_class();
const Class& control_ctx_class();
const Class& everywhere_ctx_class();
const Class& dist_class();
/// Returns all of them, in the order of help and stubs.
const std::vector<const Class*>& callback_classes();
/// Returns the members of ctx that are plain values, which the report of a failure keeps.
std::vector<std::string> ctx_values();

/// Runs a recipe's callbacks. Keeps the Lua state of the recipe alive; used by the trainer's thread.
class LuaCallbacks final : public CallbackSource {
 public:
  /// Makes the recipe read-only; from now on an error in its code is an error of the call.
  explicit LuaCallbacks(const ResolvedRecipe& recipe);
  ~LuaCallbacks() override;

  std::vector<Callback> callbacks() override;
  std::unique_ptr<ScheduleCode> schedule() override;
  void set_session(TrainingSession* session) override;
  /// Returns true while a session may still call these callbacks.
  bool has_session() const;
  /// Evaluates in a Lua state of its own, so that operators' code takes no memory from the recipe's
  /// callbacks.
  std::string evaluate(const std::string& code, bool may_command, const EventInfo& info,
                       CallbackPort& port) override;
  /// Returns the state of the newest call that failed, once: {frames: [{file, line, name, locals: [{name,
  /// text, value}]}], ctx}, innermost frame first, with values where they are plain data. Returns null when
  /// none failed.
  Json take_failure();
  /// Sets the terminal that t.debug() opens a prompt on; it must outlive this object. Without one, t.debug()
  /// says so and continues.
  void set_terminal(DebugTerminal* terminal) { terminal_ = terminal; }

 private:
  class Code;
  class Schedule;
  /// Calls tycho.running's function `name` with the values above it on the stack, and the context last.
  /// `what` names the call in warnings and must live until it returns.
  void call(const char* name, int num_args, int num_results, double limit_s, const char* what);
  std::string evaluate_here(const std::string& code, bool may_command, const EventInfo& info,
                            CallbackPort& port);
  /// Frees the memory of an entry. Returns true when too little is left for further entries.
  bool is_full_after_collection();
  /// Applies lua_memory from now on. Throws Error (kRecipe) when the recipe's own data exceeds it.
  void limit_memory();
  void push_function(const char* name);
  /// Pushes the table of functions behind t.debug().
  void push_terminal();
  static int terminal_refusal(lua_State* L);
  static int terminal_line(lua_State* L);
  static int terminal_write(lua_State* L);
  static int terminal_close(lua_State* L);
  /// `scope` names the call.
  void push_context(std::string scope, CallbackKind kind, const EventInfo& info, CallbackPort& port);

  const ResolvedRecipe recipe_;
  std::shared_ptr<LuaState> state_;
  lua_State* L_;
  std::shared_ptr<Objects> objects_;  // objects of the state
  std::map<std::string, int, std::less<>>
      functions_;  // functions of tycho.running, as references into the registry
  std::shared_ptr<SessionRef> session_;
  std::shared_ptr<Scope> scope_;  // of the running call
  const std::shared_ptr<CallbackContext> context_;
  const std::function<void(const std::string& text)> warn_;
  std::set<const char*> named_;            // code already reported as slow
  std::unique_ptr<LuaCallbacks> visitor_;  // for operators' code; created at first use
  DebugTerminal* terminal_ = nullptr;
  uint64_t seed_ = 0;
  bool dynamic_ = false;
};

}  // namespace tycho
