// Tries candidates from the newest on; loading one is also the check of its bytes.
#include "trainer/saving/resume.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/checkpoint/listing.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/ema_steps.h"
#include "trainer/saving/unit_tensors.h"

namespace tycho {
namespace {

// What keeps a checkpoint from being read whole, after ranges and optimizer were filled as far as that went;
// "" when nothing does.
std::string try_load(const CheckpointInfo& info, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                     const std::function<void()>& between, WeightAverage* average) {
  const CheckpointReader reader(info);
  if (average != nullptr) average->set_begun(has_average(info));
  // Outside the try: older checkpoints are of the same model, and going back would hide the mistake.
  check_fit(reader, ranges, &optimizer, average);
  try {
    load_tensors(reader, ranges, &optimizer, between, average);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUnusable) throw;
    return error.what();
  }
  return "";
}

// Keys that are younger than the checkpoint get the values that it was trained with.
Json with_todays_keys(const Json& checkpoint_recipe) {
  try {
    return config_to_json(read_config_or_fail(checkpoint_recipe));
  } catch (const Error&) {  // rules are younger, too
    return checkpoint_recipe;
  }
}

// What says that this run had a checkpoint to go on from; "" when nothing does. A run that started over on
// purpose since then has left the older ones behind.
std::string sign_of_checkpoints(const std::string& run_dir) {
  const std::string latest = run_dir + "/checkpoints/" + kLatestFile, events = run_dir + "/events.jsonl";
  std::error_code error;
  if (std::filesystem::is_regular_file(latest, error)) {
    std::string name = read_file(latest);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    // Damaged text is not for terminals.
    return fmt::format("{} names {}", latest, step_of_folder_name(name) ? name : "one");
  }
  std::istringstream in(std::filesystem::exists(events) ? read_file(events) : "");
  std::string saved;
  for (std::string line; std::getline(in, line);) {
    // Most lines are neither; the last one may be half written.
    if (line.find("\"checkpoint\"") == std::string::npos && line.find("\"run_start\"") == std::string::npos)
      continue;
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) continue;
    const Json kind = event.value("kind", Json()), text = event.value("text", Json());
    const Json facts = event.value("facts", Json());
    if (kind == "checkpoint" && text.is_string()) saved = text.get<std::string>();
    if (kind == "run_start" && facts.is_object() && facts.value("first_step", Json()) == 0) saved.clear();
  }
  return saved.empty() ? "" : fmt::format("{} says \"{}\"", events, saved);
}

}  // namespace

const std::vector<std::string> kNotTrained = {"run_name", "run_dir", "resume",    "threads",
                                              "parallel", "device",  "eval_data", "eval",
                                              "log",      "ckpt",    "profile"};
const std::vector<std::string> kOfTheProcess = {"run_name", "run_dir", "resume", "threads", "parallel",
                                                "device",   "log",     "ckpt",   "profile"};

std::vector<CheckpointInfo> resume_candidates(const TrainConfig& config, const std::string& run_dir,
                                              const StoredCheckpoints& stored) {
  if (config.resume == "none") return {};
  if (config.resume != "auto") return {find_checkpoint(config.resume)};
  std::vector<std::string> broken;
  std::vector<CheckpointInfo> checkpoints = list_checkpoints(run_dir + "/checkpoints", &broken);
  checkpoints.insert(checkpoints.end(), stored.committed.begin(), stored.committed.end());
  sort_newest_first(checkpoints);
  broken.insert(broken.end(), stored.broken.begin(), stored.broken.end());
  // A first save that was killed leaves a folder without COMMIT: nothing was lost, so that alone is a fresh
  // start.
  if (checkpoints.empty() && !broken.empty())
    fail(ExitCode::kUnusable,
         "[resume] {} has checkpoints, but none can be read:\n"
         "  {}\n"
         "Repair or remove them, choose another with resume=PATH, or start over with resume=none",
         run_dir, fmt::join(broken, "\n  "));
  if (const std::string sign = checkpoints.empty() ? sign_of_checkpoints(run_dir) : ""; !sign.empty())
    fail(ExitCode::kUnusable,
         "[resume] {} has no checkpoint, but {}: it was moved or removed. Put it back, name another one with "
         "resume=PATH, or start over with resume=none",
         run_dir, sign);
  for (const std::string& line : broken) checkpoints.front().warnings.push_back("left out " + line);
  return checkpoints;
}

std::vector<CheckpointInfo> resume_candidates(const TrainConfig& config, const std::string& run_dir,
                                              Communicator& world, const StoredCheckpoints& stored) {
  std::vector<CheckpointInfo> candidates;
  Json paths = Json::array();
  together(world, [&] {
    if (world.rank() == 0) candidates = resume_candidates(config, run_dir, stored);
  });
  for (const CheckpointInfo& info : candidates) paths.push_back(info.path);
  // Folders of a shared file system may show themselves to other machines a moment later.
  const Json agreed = parse_json(all_gather_strings(world, paths.dump()).front(), "resume");
  together(world, [&] {
    if (world.rank() == 0) return;
    for (const Json& path : agreed) candidates.push_back(find_checkpoint(path));
  });
  return candidates;
}

void require_same_checkpoint(Communicator& world, const CheckpointInfo& loaded) {
  const std::vector<std::string> all = all_gather_strings(world, loaded.path);
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      fail(ExitCode::kUnusable,
           "[resume] rank 0 resumed from {}, but rank {} could not read it and used {}: repair or remove the "
           "newer one, or choose one with resume=PATH",
           all[0], r, all[r]);
}

CheckpointInfo load_newest(const std::vector<CheckpointInfo>& candidates,
                           const std::vector<OwnedRange>& ranges, Optimizer& optimizer, Communicator& world,
                           Reporter& reporter, const std::function<void()>& between, WeightAverage* average) {
  std::string failures;
  for (const CheckpointInfo& info : candidates) {
    for (const std::string& warning : info.warnings)
      reporter.event("warning", warning, {{"step", info.step}, {"path", info.path}});
    std::string failure;
    for (std::string& one : all_gather_strings(world, try_load(info, ranges, optimizer, between, average)))
      if (failure.empty()) failure = std::move(one);
    if (failure.empty()) return info;
    failures += "\n  " + failure;
    reporter.event("warning",
                   fmt::format("step {} cannot be read, using an older one: {}", info.step, failure),
                   {{"step", info.step}, {"path", info.path}});
  }
  fail(ExitCode::kUnusable,
       "[resume] no checkpoint can be read:{}\n"
       "Choose another with resume=PATH, or start over with resume=none",
       failures);
}

void warn_of_newer(const std::string& run_dir, int64_t step, Reporter& reporter) {
  const std::vector<CheckpointInfo> all = list_checkpoints(run_dir + "/checkpoints");
  if (!all.empty() && all.front().step > step)
    reporter.event(
        "warning",
        fmt::format(
            "the newest checkpoint in this run's folder is of step {}: a resumed run goes on from that "
            "one until this run saves again",
            all.front().step),
        {{"step", all.front().step}});
}

std::vector<ConfigDifference> changes_since(const Json& checkpoint_recipe, const Json& recipe) {
  return diff_configs(with_todays_keys(checkpoint_recipe), recipe);
}

std::string recipe_changes(const Json& checkpoint_recipe, const Json& recipe,
                           const std::vector<std::string>& without) {
  const auto what_matters = [&](Json json) {
    for (const std::string& key : without) json.erase(key);
    return json;
  };
  std::string table;
  for (const ConfigDifference& difference :
       diff_configs(what_matters(with_todays_keys(checkpoint_recipe)), what_matters(recipe)))
    table += fmt::format("\n  {:<28} {} -> {}", difference.path, difference.old_value, difference.new_value);
  return table;
}

std::string average_change(const CheckpointInfo& checkpoint, const Json& recipe) {
  const bool now = keeps_average(recipe);
  if (!now && has_average(checkpoint))
    return "the checkpoint keeps an average of the weights (ema), but the recipe has no ema.half_life, "
           "ema.decay or eval_weights: checkpoints from here on have none";
  if (now && !keeps_average(checkpoint.manifest.at("recipe")))
    return "the checkpoint keeps no average of the weights (ema): it begins with the first step from here on "
           "that ema.start allows";
  return "";
}

std::string route_changes(const Json& checkpoint_route, const Json& route) {
  if (!checkpoint_route.is_object()) return "";
  std::map<std::string, std::pair<std::string, std::string>> lines;
  for (const auto& [name, value] : checkpoint_route.items()) lines[name].first = value.get<std::string>();
  for (const auto& [name, value] : route.items()) lines[name].second = value.get<std::string>();
  std::string table;
  for (const auto& [name, values] : lines) {
    const auto& [before, now] = values;
    if (before != now)
      table +=
          fmt::format("\n  {:<10} {} -> {}", name, before.empty() ? "-" : before, now.empty() ? "-" : now);
  }
  return table;
}

void report_resume(const CheckpointInfo& checkpoint, const Json& recipe, const Json& route,
                   Reporter& reporter) {
  const std::string conflicts = recipe_changes(checkpoint.manifest.at("recipe"), recipe, kNotTrained);
  reporter.event("resume", fmt::format("resumed from step {} ({})", checkpoint.step, checkpoint.path),
                 {{"step", checkpoint.step}, {"path", checkpoint.path}});
  if (!conflicts.empty())
    reporter.event(
        "warning",
        "the recipe differs from the checkpoint's (checkpoint -> recipe; the recipe wins):" + conflicts,
        {{"step", checkpoint.step}});
  if (const std::string change = average_change(checkpoint, recipe); !change.empty())
    reporter.event("warning", change, {{"step", checkpoint.step}});
  const Json before = checkpoint.manifest.value("route", Json());
  if (const std::string changes = route_changes(before, route); !changes.empty())
    reporter.event("warning",
                   "the route has changed since the checkpoint, so bits may differ from an uninterrupted "
                   "run's (checkpoint -> now):" +
                       changes,
                   {{"step", checkpoint.step}, {"route", route}, {"checkpoint_route", before}});
}

}  // namespace tycho
