// The classes of a session together, and how one is handed to Lua.
#include "bindings/run/session_objects.h"

#include "bindings/run/lua_callbacks.h"

namespace tycho {

void SessionRef::close(const std::string& reason) {
  if (session == nullptr) return;
  session->close(reason, {});
  scope->close();
  session = nullptr;
  owned.reset();
}

TrainingSession& session(Call& call) { return *call.self<SessionRef>().session; }

const std::vector<const Class*>& session_classes() {
  static const std::vector<const Class*> classes = [] {
    std::vector<const Class*> all = {&trainer_class(), &steps_class(),     &model_class(), &params_class(),
                                     &tensor_class(),  &histogram_class(), &opt_class(),   &sched_class(),
                                     &data_class(),    &ckpt_class(),      &log_class(),   &mem_class(),
                                     &profile_class()};
    // insert() would make GCC 12 for Arm warn about its moves.
    for (const Class* one : callback_classes()) all.push_back(one);
    return all;
  }();
  return classes;
}

void push_session(lua_State* L, const std::shared_ptr<SessionRef>& session) {
  Objects& objects = Objects::of(L);
  lua_newtable(L);
  for (const Class* one : {&trainer_class(), &model_class(), &opt_class(), &sched_class(), &data_class(),
                           &ckpt_class(), &log_class(), &mem_class(), &profile_class()}) {
    objects.push(L, *one, session, session->scope);
    lua_setfield(L, -2, one->name);
  }
  auto commands = std::make_shared<CommandQueue>();
  commands->add = [ref = session.get()](Command command) {
    command.by = "repl";
    ref->session->command(std::move(command));
  };
  objects.push(L, cmd_class(), std::move(commands), session->scope);
  lua_setfield(L, -2, cmd_class().name);
}

}  // namespace tycho
