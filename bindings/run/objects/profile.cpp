// The Lua object `profile`.
#include <filesystem>
#include <system_error>

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

int profile_state(Call& call) {
  const ProfileState now = session(call).profile_state();
  Json json = {{"phase", now.phase}};
  if (!now.path.empty()) json["path"] = now.path;
  return call.push(json);
}

// Rank 0's: others have one of their own only where the recipe says so.
int copy_trace(Call& call) {
  const std::string trace = session(call).profile_state().path, to = call.text(1);
  if (session(call).facts().rank != 0) return call.push(to);
  if (trace.empty())
    throw ScriptError("E_USAGE", "profile:export: no trace has been recorded yet",
                      "profile:now{ active = \"3ba\" } records the next steps");
  std::error_code error;
  std::filesystem::copy_file(trace, to, error);
  if (error == std::errc::file_exists)
    throw ScriptError("E_ARGUMENT", fmt::format("profile:export: {} already exists", to),
                      "choose another name");
  if (error) fail(ExitCode::kStorage, "[profile] cannot write {}: {}", to, error.message());
  return call.push(to);
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
      .doc = "Traces of selected steps.",
      .fields = {{"schedule", "table?", "The recipe's settings.", schedule},
                 {"state", "table",
                  "phase, of the next step: \"wait\", \"warmup\", \"active\" or \"off\"; path of the newest "
                  "trace, if there is one.",
                  profile_state}},
      .methods = {{"now",
                   "",
                   "Records the next steps as a trace in the run folder, like cmd.profile.",
                   {{"options",
                     Kind::kOptions,
                     "",
                     true,
                     -HUGE_VAL,
                     HUGE_VAL,
                     {{"active", Kind::kDuration, "How long; default one step.", true}}}},
                   now,
                   true},
                  {"export",
                   "string",
                   "Copies the newest trace of the open run to a new file and returns its path.",
                   {{"path", Kind::kText, "A file that does not exist yet.", false}},
                   copy_trace,
                   true}},
      .text = profile_text};
  return object;
}

}  // namespace tycho
