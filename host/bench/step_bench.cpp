// Times steps, and adds up the ranges of a trace.
#include "host/bench/step_bench.h"

#include <algorithm>
#include <map>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

/// Returns the kind of work that a range measures; "" for a range inside another one, and for foreign ranges.
std::string part_named(const std::string& range) {
  if (range == "data wait") return "waiting for data";
  if (range == "head forward and backward") return "head and loss";
  if (range.ends_with(" recompute")) return "recompute";
  if (range.ends_with(" forward")) return "forward";
  if (range.ends_with(" backward")) return "backward";
  if (range == "gradient norm" || range == "optimizer") return range;
  if (range.starts_with("callbacks of ")) return "callbacks";
  return "";
}

void add_mean(std::optional<double>& mean, const std::optional<double>& value, size_t count) {
  if (value) mean = mean.value_or(0) + *value / static_cast<double>(count);
}

}  // namespace

StepBench bench_steps(TrainingSession& session, int64_t warmup, int64_t num_steps) {
  if (warmup > 0) session.step(warmup);
  const std::vector<StepMetrics> steps = session.step(num_steps);
  TYCHO_CHECK(
      !steps.empty(),
      "[bench] no step is left to time after {} of warm-up: lengthen max_duration, or give fewer --warmup",
      warmup);
  StepBench bench;
  bench.num_steps = static_cast<int64_t>(steps.size());
  std::vector<double> seconds;
  for (const StepMetrics& step : steps) {
    seconds.push_back(step.step_s);
    bench.data_wait_s += step.data_wait_s / static_cast<double>(steps.size());
    add_mean(bench.comm_wait_s, step.comm_wait_s, steps.size());
    add_mean(bench.comm_s, step.comm_s, steps.size());
  }
  std::sort(seconds.begin(), seconds.end());
  bench.fastest_s = seconds.front();
  bench.median_s = seconds[seconds.size() / 2];
  bench.slowest_s = seconds.back();
  const RunInfo& run = session.facts().run;
  bench.tokens_per_step = steps.back().tokens / std::max<int64_t>(1, steps.back().step);
  bench.speed = speed_of(bench.tokens_per_step, bench.median_s, run);
  const MemoryUse memory = session.memory();
  bench.memory_bytes = memory.peak - memory.before;
  return bench;
}

std::vector<StepPart> parts_of_trace(std::string_view trace) {
  const Json json = Json::parse(trace, nullptr, false);
  const auto events = json.is_object() ? json.find("traceEvents") : json.end();
  if (!json.is_object() || events == json.end() || !events->is_array())
    fail(ExitCode::kUnusable, "[bench] the trace of the profiled steps is not one: it has no traceEvents");
  std::map<std::string, double> micros;
  double steps = 0, named = 0;
  for (const Json& event : *events) {
    // On a GPU each range is there a second time, as what it started there.
    if (!event.is_object() || event.value("ph", "") != "X" || event.value("cat", "").starts_with("gpu_"))
      continue;
    const std::string name = event.value("name", "");
    const auto duration = event.find("dur");
    if (duration == event.end() || !duration->is_number()) continue;
    if (name.starts_with("ProfilerStep#")) steps += duration->get<double>();
    const std::string part = part_named(name);
    if (part.empty()) continue;
    micros[part] += duration->get<double>();
    named += duration->get<double>();
  }
  if (steps <= 0) return {};
  micros["other"] = std::max(0.0, steps - named);
  std::vector<StepPart> parts;
  for (const auto& [name, time] : micros) parts.push_back({name, time / 1e6, time / steps});
  std::sort(parts.begin(), parts.end(),
            [](const StepPart& a, const StepPart& b) { return a.seconds > b.seconds; });
  return parts;
}

}  // namespace tycho
