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

/// What the objects of one session share. The session is another's (a running `fit`) or `owned` here.
struct SessionRef : std::enable_shared_from_this<SessionRef> {
  TrainingSession* session = nullptr;
  std::unique_ptr<TrainingSession> owned;
  std::shared_ptr<Scope> scope;
  bool unicode = true;       // drawings and tensors
  bool writes_files = true;  // of tensors: rank 0 does
  bool keeps_record = true;  // false where a callback of all ranks runs on another than 0: rank 0 records it

  /// Ends the run's record, expires every handle, and gives the memory back when it is owned.
  void close(const std::string& reason);
};

/// The session that a method was called on.
TrainingSession& session(Call& call);

/// Where the commands of a cmd object go. They are checked.
struct CommandQueue {
  std::function<void(Command)> add;
};

/// A tensor in Lua; `param` names the parameter that it is a view of, by position, or -1.
struct TensorObject {
  std::unique_ptr<TensorView> view;
  std::shared_ptr<SessionRef> of;
  int64_t param = -1;
};

/// One binding file each.
const Class& trainer_class();
const Class& steps_class();  // what trainer:step returns
const Class& model_class();
const Class& params_class();
const Class& opt_class();
const Class& sched_class();
const Class& data_class();
const Class& ckpt_class();
const Class& log_class();
const Class& mem_class();
const Class& profile_class();
const Class& cmd_class();  // of a CommandQueue
const Class& tensor_class();
const Class& histogram_class();

/// All of them and those of callbacks, in the order of help and stubs.
const std::vector<const Class*>& session_classes();

/// Pushes a table with one object of each: trainer, model, opt, sched, data, ckpt, log, mem, profile, cmd.
void push_session(lua_State* L, const std::shared_ptr<SessionRef>& session);

/// Pushes a tensor that lives in `scope`; one that owns its bytes is counted and Lua's own.
void push_tensor(Call& call, std::unique_ptr<TensorView> view, std::shared_ptr<SessionRef> of = nullptr,
                 int64_t param = -1);

}  // namespace tycho
