// The recipe's functions while its run trains: callbacks and schedules whose code is Lua.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "bindings/define/lua_util.h"
#include "bindings/define/recipe.h"
#include "bindings/run/class.h"
#include "bindings/run/objects.h"
#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/callbacks/config.h"

namespace tycho {

struct SessionRef;
struct CommandQueue;

/// What callbacks are called with; of the call that runs.
struct CallbackContext : std::enable_shared_from_this<CallbackContext> {
  const EventInfo* info = nullptr;
  CallbackPort* port = nullptr;
  std::shared_ptr<SessionRef> session;
  std::shared_ptr<CommandQueue> commands;  // into the port
};

/// The classes of ctx, by kind, and of what only it has.
const Class& observe_ctx_class();
const Class& control_ctx_class();
const Class& everywhere_ctx_class();
const Class& dist_class();
/// All of them, in the order of help and stubs.
const std::vector<const Class*>& callback_classes();
/// Members of ctx that are plain values: what the report of a failure keeps.
std::vector<std::string> ctx_values();

/// The source of a recipe's callbacks. Keeps the Lua state of the recipe alive; used by the trainer's thread.
class LuaCallbacks final : public CallbackSource {
 public:
  /// From now on the recipe can only be read, and what is wrong in its code is an error of the call.
  explicit LuaCallbacks(const ResolvedRecipe& recipe);
  ~LuaCallbacks() override;

  std::vector<Callback> callbacks() override;
  std::unique_ptr<ScheduleCode> schedule() override;
  void set_session(TrainingSession* session) override;
  /// Whether a session may still call these.
  bool has_session() const;
  /// In a Lua state of its own: what operators type takes no memory from the recipe's callbacks.
  std::string evaluate(const std::string& code, bool may_command, const EventInfo& info,
                       CallbackPort& port) override;
  /// Of the newest call that failed, once: {frames: [{file, line, name, locals: [{name, text, value}]}],
  /// ctx}, innermost frame first, values where they are plain data. Null when none failed.
  Json take_failure();

 private:
  class Code;
  class Schedule;
  /// Calls tycho.running's function `name` with what is above it on the stack and the context last. `what`:
  /// what people call this, for warnings; stays until the call returns.
  void call(const char* name, int num_args, int num_results, double limit_s, const char* what);
  std::string evaluate_here(const std::string& code, bool may_command, const EventInfo& info,
                            CallbackPort& port);
  /// Frees what an entry left; whether what stays is too much for further entries.
  bool is_full_after_collection();
  /// From here on lua_memory holds. Throws Error (kRecipe) when what the recipe keeps is more.
  void limit_memory();
  void push_function(const char* name);
  /// `scope`: what the call is called.
  void push_context(std::string scope, CallbackKind kind, const EventInfo& info, CallbackPort& port);

  const ResolvedRecipe recipe_;
  std::shared_ptr<LuaState> state_;
  lua_State* L_;
  std::shared_ptr<Objects> objects_;                   // the state's
  std::map<std::string, int, std::less<>> functions_;  // of tycho.running, as references of the registry
  std::shared_ptr<SessionRef> session_;
  std::shared_ptr<Scope> scope_;  // of the call that runs
  const std::shared_ptr<CallbackContext> context_;
  const std::function<void(const std::string& text)> warn_;
  std::set<const char*> named_;            // what took so long that it was reported: once is enough
  std::unique_ptr<LuaCallbacks> visitor_;  // for operators; made for the first one
  uint64_t seed_ = 0;
  bool dynamic_ = false;
};

}  // namespace tycho
