// The Lua objects of an open session: trainer, model, opt, sched, data, ckpt, log, mem, profile, cmd, and
// tensors.
#pragma once
#include <functional>
#include <memory>

#include "bindings/run/class.h"
#include "bindings/run/objects.h"
#include "trainer/callbacks/command.h"
#include "trainer/session/session.h"
#include "trainer/session/tensor_view.h"

namespace tycho {

/// State shared by the objects of one session. The session belongs to a running `fit`, or is `owned` here.
struct SessionRef : std::enable_shared_from_this<SessionRef> {
  TrainingSession* session = nullptr;
  std::unique_ptr<TrainingSession> owned;
  std::shared_ptr<Scope> scope;
  bool unicode = true;       // for plots and tensors
  bool writes_files = true;  // of tensors; true on rank 0
  bool keeps_record =
      true;  // false in a callback of all ranks on another rank than 0, because rank 0 keeps the record

  /// Ends the run's record, expires every handle, and frees the session when it is owned.
  void close(const std::string& reason);
};

/// Returns the session that a method was called on.
TrainingSession& session(Call& call);

/// Receives the checked commands of a cmd object.
struct CommandQueue {
  std::function<void(Command)> add;
};

/// A tensor in Lua; `param` is the position of the parameter that it is a view of, or -1.
struct TensorObject {
  std::unique_ptr<TensorView> view;
  std::shared_ptr<SessionRef> of;
  int64_t param = -1;
};

/// The classes of the objects, each in a source of its own.
const Class& trainer_class();
const Class& steps_class();  // result of trainer:step
const Class& model_class();
const Class& params_class();
const Class& opt_class();
const Class& sched_class();
const Class& data_class();
const Class& ckpt_class();
const Class& log_class();
const Class& mem_class();
const Class& profile_class();
const Class& cmd_class();  // its target is a CommandQueue
const Class& tensor_class();
const Class& histogram_class();

/// Returns all of them and those of callbacks, in the order of help and stubs.
const std::vector<const Class*>& session_classes();

/// Pushes a table with one object of each: trainer, model, opt, sched, data, ckpt, log, mem, profile, cmd.
void push_session(lua_State* L, const std::shared_ptr<SessionRef>& session);

/// Pushes a tensor. One that owns its bytes is counted and lives until Lua drops it; others live in the
/// call's scope.
void push_tensor(Call& call, std::unique_ptr<TensorView> view, std::shared_ptr<SessionRef> of = nullptr,
                 int64_t param = -1);

}  // namespace tycho
