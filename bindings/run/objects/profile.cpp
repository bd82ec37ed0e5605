// The Lua face of the profiler.
#include "bindings/run/session_objects.h"

namespace tycho {
namespace {

Json schedule_of(Call& call) { return session(call).facts().recipe.value("profile", Json()); }

int schedule(Call& call) {
  const Json schedule = schedule_of(call);
  return schedule.is_null() ? call.push_nil() : call.push(schedule);
}

int now(Call& call) {
  const Json options = call.has(1) ? call.data(1) : Json::object();
  const Json active = options.value("active", Json());
  session(call).command(make_command("profile", Json::array({active}), nullptr, "repl"));
  return 0;
}

int profile_text(Call& call) {
  const Json schedule = schedule_of(call);
  const std::string active = schedule.is_object() ? schedule.value("active", Json()).dump() : "null";
  return call.push("profile  of the recipe: active " + active +
                   "  profile:now{ active = \"3ba\" } records the next steps");
}

}  // namespace

const Class& profile_class() {
  using Kind = Arg::Kind;
  static const Class object = {
      .name = "profile",
      .doc = "Traces of some steps.",
      .fields = {{"schedule", "table?", "What the recipe says of it.", schedule}},
      .methods = {{"now",
                   "",
                   "Records the next steps as a trace in the run's folder, as cmd.profile.",
                   {{"options",
                     Kind::kOptions,
                     "",
                     true,
                     -HUGE_VAL,
                     HUGE_VAL,
                     {{"active", Kind::kDuration, "How long; one step by default.", true}}}},
                   now,
                   true}},
      .text = profile_text};
  return object;
}

}  // namespace tycho
