// The Lua object `ckpt`.
#include <filesystem>

#include "bindings/run/session_objects.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

constexpr const char* kWhich = "A step, a folder's name, a tag, \"best\" or \"latest\".";

std::vector<CheckpointInfo> committed(Call& call) {
  return list_checkpoints(session(call).facts().run.run_dir + "/checkpoints");
}

std::string folder_name(const CheckpointInfo& info) { return std::filesystem::path(info.path).filename(); }

Json figures(const CheckpointInfo& info) {
  Json json = {
      {"step", info.step}, {"name", folder_name(info)}, {"path", info.path}, {"bytes", info.num_bytes}};
  if (!info.tag.empty()) json["tag"] = info.tag;
  return json;
}

/// Returns the loss over all sets of eval_data, if it was measured at this very step.
std::optional<double> eval_loss(const CheckpointInfo& info) {
  static const Json::json_pointer last("/eval/total/last");
  const Json& train = info.manifest.at("train_state");
  if (!train.contains(last) || train.at(last).at("step") != info.step) return std::nullopt;
  const Json& loss = train.at(last).at("loss");  // null for what is not a number
  return loss.is_number() ? std::optional(loss.get<double>()) : std::nullopt;
}

/// Returns the checkpoint with the lowest loss; nullopt when none was evaluated.
std::optional<CheckpointInfo> best_of(const std::vector<CheckpointInfo>& all) {
  std::optional<CheckpointInfo> best;
  for (const CheckpointInfo& info : all) {
    const std::optional<double> loss = eval_loss(info);
    if (loss && (!best || *loss < *eval_loss(*best))) best = info;
  }
  return best;
}

/// Finds a checkpoint by step, folder name or tag, "latest" or "best"; nullopt when there is none.
std::optional<CheckpointInfo> find(Call& call, int arg) {
  const bool by_step = lua_type(call.L, arg + 1) == LUA_TNUMBER;
  if (!by_step && lua_type(call.L, arg + 1) != LUA_TSTRING)
    throw ScriptError("E_ARGUMENT",
                      "ckpt: which expects a step, a folder's name, a tag, \"best\" or \"latest\"");
  const std::vector<CheckpointInfo> all = committed(call);
  const std::string name = by_step ? "" : call.text(arg);
  for (const CheckpointInfo& info : all) {
    if (by_step ? info.step == call.integer(arg)
                : name == "latest" || name == folder_name(info) || (!name.empty() && name == info.tag))
      return info;
  }
  return name == "best" ? best_of(all) : std::nullopt;
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

int best(Call& call) {
  const auto found = best_of(committed(call));
  if (!found) return call.push_nil();
  Json result = figures(*found);
  result["loss"] = *eval_loss(*found);
  return call.push(result);
}

// A text that does not name a checkpoint of this run is a path.
int load(Call& call) {
  const auto found = find(call, 1);
  if (!found && lua_type(call.L, 2) == LUA_TNUMBER)
    throw ScriptError("E_NAME", fmt::format("ckpt:load: there is no checkpoint of step {}", call.integer(1)),
                      "ckpt:list() lists them");
  if (!found && (call.text(1) == "latest" || call.text(1) == "best"))
    throw ScriptError("E_NAME", fmt::format("ckpt:load: there is no {} checkpoint", call.text(1)),
                      "ckpt:list() lists them; the best one needs an evaluation at its step");
  const SavedCheckpoint loaded = session(call).load(found ? found->path : call.text(1));
  return call.push(Json{{"step", loaded.step}, {"path", loaded.path}});
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
  if (!a || !b)
    throw ScriptError("E_NAME", "ckpt:diff: one of the checkpoints does not exist", "ckpt:list() lists them");
  Json rows = Json::array();
  for (const ConfigDifference& one : diff_configs(a->manifest.at("recipe"), b->manifest.at("recipe")))
    rows.push_back({{"key", one.path}, {"old", one.old_value}, {"new", one.new_value}});
  return call.push(rows);
}

int ckpt_text(Call& call) {
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
      .fields = {{"last", "table?", "The newest: step, name, path, bytes, tag.", last},
                 {"best", "table?",
                  "The one with the lowest loss over eval_data, evaluated at its step: step, name, path, "
                  "bytes, tag, loss.",
                  best},
                 {"dir", "string", "Their folder.",
                  [](Call& c) { return c.push(session(c).facts().run.run_dir + "/checkpoints"); }}},
      .methods = {{"list", "table[]", "All of them, newest first: step, name, path, bytes, tag.", {}, list},
                  {"info",
                   "table?",
                   "One of them, with its train_state and recipe_hash; nil if it does not exist.",
                   {{"which", Kind::kAny, kWhich, false}},
                   info},
                  {"load",
                   "table",
                   "Restores all state from a checkpoint, as if the run had just reached it: step, path.",
                   {{"which", Kind::kAny,
                     "A step, a name, a tag, \"best\", \"latest\", or the path of another run's checkpoint.",
                     false}},
                   load,
                   true},
                  {"diff",
                   "table[]",
                   "Differences between the recipes of two checkpoints: key, old, new.",
                   {{"a", Kind::kAny, kWhich, false}, {"b", Kind::kAny, "The other.", false}},
                   diff},
                  {"save",
                   "string",
                   "Saves one, waits until it is durable, and returns its folder.",
                   {},
                   [](Call& c) { return c.push(session(c).save().path); },
                   true}},
      .text = ckpt_text};
  return object;
}

}  // namespace tycho
