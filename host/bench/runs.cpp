// Measures steps in a throw-away folder, and compares runs that are there.
#include "host/bench/runs.h"

#include <filesystem>
#include <optional>

#include "host/bench/step_bench.h"
#include "host/recipe_words.h"
#include "host/run_report.h"
#include "host/signals.h"
#include "host/start/choose_mesh.h"
#include "host/start/probe.h"
#include "host/text_table.h"
#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/metrics/format.h"
#include "trainer/report/run_table.h"

namespace tycho {
namespace {

constexpr int64_t kProfiledSteps = 3;

ResolvedRecipe recipe_here(const Arguments& arguments, const RankInfo& place) {
  const InterruptLua interruptible;
  const RecipeRequest request = recipe_request(arguments);
  return choose_mesh(resolve_recipe(request), request, devices_of(place)).recipe;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// Returns the parts of the newest trace of this rank; empty when it recorded none.
std::vector<StepPart> profiled_parts(TrainingSession& session) {
  session.step(kProfiledSteps + 1);  // the first one includes the profiler's start
  const std::string path = session.profile_state().path;
  return path.empty() || !std::filesystem::exists(path) ? std::vector<StepPart>()
                                                        : parts_of_trace(read_file(path));
}

Json parts_json(const std::vector<StepPart>& parts) {
  Json list = Json::array();
  for (const StepPart& part : parts)
    list.push_back({{"part", part.name}, {"seconds", part.seconds / kProfiledSteps}, {"share", part.share}});
  return list;
}

Json step_bench_json(const StepBench& bench, const std::vector<StepPart>& parts, const RunInfo& run) {
  Json json = {{"device", run.device},
               {"num_ranks", run.num_ranks},
               {"num_params", run.num_params},
               {"num_steps", bench.num_steps},
               {"tokens_per_step", bench.tokens_per_step},
               {"fastest_s", bench.fastest_s},
               {"median_s", bench.median_s},
               {"slowest_s", bench.slowest_s},
               {"data_wait_s", bench.data_wait_s},
               {"comm_wait_s", or_null(bench.comm_wait_s)},
               {"comm_s", or_null(bench.comm_s)},
               {"tokens_per_s", bench.speed.tokens_per_s},
               {"tflops", bench.speed.tflops},
               {"mfu", or_null(bench.speed.mfu)},
               {"memory_bytes", bench.memory_bytes}};
  json["parts"] = parts_json(parts);
  return json;
}

void print_step_bench(const StepBench& bench, const std::vector<StepPart>& parts, const RunInfo& run) {
  fmt::print("{}, {} rank{}, {} parameters, {} tokens a step\n\n", run.device, run.num_ranks,
             run.num_ranks == 1 ? "" : "s", human_count(static_cast<double>(run.num_params)),
             human_count(static_cast<double>(bench.tokens_per_step)));
  std::vector<std::vector<std::string>> rows = {
      {"measured", ""},
      {fmt::format("step, median of {}", bench.num_steps), fmt::format("{:.4g} s", bench.median_s)},
      {"fastest, slowest", fmt::format("{:.4g} s, {:.4g} s", bench.fastest_s, bench.slowest_s)},
      {"tokens/s", human_count(bench.speed.tokens_per_s)},
      {"TFLOP/s", metric_text(bench.speed.tflops)},
      {"MFU", bench.speed.mfu ? percent_text(*bench.speed.mfu) : "unknown: no peak for this device"},
      {"memory of a rank", human_bytes(static_cast<double>(bench.memory_bytes))}};
  if (bench.comm_wait_s && bench.comm_s)
    rows.push_back({"waits for other ranks", fmt::format("{:.4g} s of a step; {:.4g} s moved or summed",
                                                         *bench.comm_wait_s, *bench.comm_s)});
  fmt::print("{}", text_table(rows));
  if (parts.empty()) return;
  fmt::print("\nwhere the time of {} profiled steps goes, on rank 0's training thread\n", kProfiledSteps);
  constexpr double kBarColumns = 40;
  for (const StepPart& part : parts)
    fmt::print("  {:<17} {:>8.2f} ms {:>5.1f} %  {}\n", part.name, 1e3 * part.seconds / kProfiledSteps,
               100 * part.share, std::string(static_cast<size_t>(kBarColumns * part.share + 0.5), '#'));
}

}  // namespace

Arguments without_subverb(Arguments arguments) {
  if (arguments.words.empty()) return arguments;
  arguments.words.erase(arguments.words.begin());
  if (!arguments.numbers.empty()) arguments.numbers.erase(arguments.numbers.begin());
  return arguments;
}

int bench_step(const Arguments& given) {
  const Arguments arguments = without_subverb(given);
  const int64_t warmup = arguments.integer("warmup", 0, 1'000'000);
  const int64_t num_steps = arguments.integer("iterations", 1, 1'000'000);
  const RankInfo place = find_rank_place(process_environment());
  ResolvedRecipe recipe = recipe_here(arguments, place);
  ProfileConfig profile;
  profile.skip_first = {static_cast<double>(warmup + num_steps), DurationUnit::kBatch};
  profile.active = Duration{static_cast<double>(kProfiledSteps), DurationUnit::kBatch};
  return try_recipe(recipe, place, profile, [&](TrainingSession& session) {
    const StepBench bench = bench_steps(session, warmup, num_steps);
    const std::vector<StepPart> parts = profiled_parts(session);
    if (place.rank != 0) return;
    if (arguments.has("json"))
      fmt::print("{}\n", step_bench_json(bench, parts, session.facts().run).dump(2));
    else
      print_step_bench(bench, parts, session.facts().run);
  });
}

int bench_scale(const Arguments& arguments) {
  RunFollower follower({arguments.words.begin() + 1, arguments.words.end()});
  follower.update();
  const std::vector<RunSummary>& runs = follower.runs();
  if (arguments.has("json"))
    fmt::print("{}\n", runs_json(runs).dump(2));
  else
    print_runs(runs);
  return 0;
}

}  // namespace tycho
