// The Lua face of the checkpoints of a run.
#include <filesystem>

#include "bindings/run/session_objects.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config_io.h"

namespace tycho {
namespace {

TrainingSession& session(Call& call) { return *call.self<SessionRef>().session; }

std::vector<CheckpointInfo> committed(Call& call) {
  return list_checkpoints(session(call).facts().run.run_dir + "/checkpoints");
}

std::string folder_name(const CheckpointInfo& info) { return std::filesystem::path(info.path).filename(); }

Json figures(const CheckpointInfo& info) {
  return {{"step", info.step}, {"name", folder_name(info)}, {"path", info.path}, {"bytes", info.num_bytes}};
}

/// By step, by folder name, or "latest"; nothing when there is none.
std::optional<CheckpointInfo> find(Call& call, int arg) {
  const bool by_step = lua_type(call.L, arg + 1) == LUA_TNUMBER;
  if (!by_step && lua_type(call.L, arg + 1) != LUA_TSTRING)
    throw ScriptError("E_ARGUMENT", "ckpt: which wants a step, a folder's name or \"latest\"");
  for (const CheckpointInfo& info : committed(call)) {
    if (by_step ? info.step == call.integer(arg)
                : call.text(arg) == "latest" || call.text(arg) == folder_name(info))
      return info;
  }
  return std::nullopt;
}

int list(Call& call) {
  Json all = Json::array();
  for (const CheckpointInfo& info : committed(call)) all.push_back(figures(info));
  return call.push(all);
}

int last(Call& call) {
  const auto all = committed(call);
  return all.empty() ? call.push_nil() : call.push(figures(all.front()));
}

int info(Call& call) {
  const auto found = find(call, 1);
  if (!found) return call.push_nil();
  Json result = figures(*found);
  result["train_state"] = found->manifest.at("train_state");
  result["recipe_hash"] = found->manifest.value("recipe_hash", "");
  return call.push(result);
}

int diff(Call& call) {
  const auto a = find(call, 1), b = find(call, 2);
  if (!a || !b) throw ScriptError("E_NAME", "ckpt:diff: one of them is not there", "ckpt:list() names them");
  Json rows = Json::array();
  for (const ConfigDifference& one : diff_configs(a->manifest.at("recipe"), b->manifest.at("recipe")))
    rows.push_back({{"key", one.path}, {"old", one.old_value}, {"new", one.new_value}});
  return call.push(rows);
}

int text(Call& call) {
  const auto all = committed(call);
  std::string lines = fmt::format("ckpt {} in {}", all.size(), session(call).facts().run.run_dir);
  for (const CheckpointInfo& one : all) lines += "\n  " + folder_name(one);
  return call.push(lines);
}

}  // namespace

const Class& ckpt_class() {
  using Kind = Arg::Kind;
  static const Class object = {
      .name = "ckpt",
      .doc = "The checkpoints of the run.",
      .fields = {{"last", "table?", "The newest: step, name, path, bytes.", last},
                 {"dir", "string", "Where they are.",
                  [](Call& c) { return c.push(session(c).facts().run.run_dir + "/checkpoints"); }}},
      .methods = {{"list", "table[]", "All of them, newest first: step, name, path, bytes.", {}, list},
                  {"info",
                   "table?",
                   "One of them, with its train_state and recipe_hash; nil when it is not there.",
                   {{"which", Kind::kAny, "A step, a folder's name or \"latest\".", false}},
                   info},
                  {"diff",
                   "table[]",
                   "What differs between the recipes of two: key, old, new.",
                   {{"a", Kind::kAny, "A step, a folder's name or \"latest\".", false},
                    {"b", Kind::kAny, "The other.", false}},
                   diff},
                  {"save",
                   "string",
                   "Saves one, waits until it is durable, and gives its folder.",
                   {},
                   [](Call& c) { return c.push(session(c).save().path); },
                   true}},
      .text = text};
  return object;
}

}  // namespace tycho
