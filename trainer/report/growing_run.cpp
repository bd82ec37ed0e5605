// Reads events before the numbers that refer to them.
#include "trainer/report/growing_run.h"

#include <charconv>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Finds what sets the cost of a token in the resolved recipe.
void find_work(RunSummary& run) {
  const std::string path = run.folder + "/recipe.json";
  if (!fs::exists(path)) return;
  const Json recipe = Json::parse(read_file(path), nullptr, false);
  if (!recipe.is_object()) return;
  run.recipe = recipe;
  Json work = Json::object();
  for (const char* key : {"model", "lora", "fp8", "seq_len", "precision"})
    if (recipe.contains(key)) work[key] = recipe[key];
  if (work.contains("model") && work["model"].is_object()) work["model"].erase("weights");
  run.work = work.dump();
}

/// Finds the number of nodes in the launcher's variables, which env.json keeps.
void find_nodes(RunSummary& run) {
  const std::string path = run.folder + "/env.json";
  if (!fs::exists(path)) return;
  const Json environment = Json::parse(read_file(path), nullptr, false);
  if (!environment.is_object()) return;
  const auto count = [&](const char* name) -> int64_t {
    const std::string text = text_in(environment, name);
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  if (const int64_t per_node = count("LOCAL_WORLD_SIZE"); per_node > 0)
    run.num_nodes = (run.num_ranks + per_node - 1) / per_node;
  else if (const int64_t nodes = count("SLURM_STEP_NUM_NODES"); nodes > 0)
    run.num_nodes = nodes;
}

}  // namespace

GrowingRun::GrowingRun(const std::string& folder, std::vector<std::string> patterns, int64_t last_step)
    : folder_(folder),
      patterns_(std::move(patterns)),
      last_step_(last_step),
      events_file_(folder + "/events.jsonl"),
      metrics_file_(folder + "/metrics.jsonl"),
      evals_file_(folder + "/evals.jsonl"),
      events_(folder),
      numbers_(patterns_, last_step, {}) {}

bool GrowingRun::update() {
  const bool replaced =
      events_file_.was_replaced() || metrics_file_.was_replaced() || evals_file_.was_replaced();
  if (replaced) begin_again({});
  bool any = read();
  while (numbers_.is_stale()) {
    begin_again(numbers_.kept_steps());
    any = read();
  }
  return any || replaced;
}

bool GrowingRun::read() {
  // The event of a start comes before its numbers, so what events do not know yet waits.
  const int64_t metrics_end = metrics_file_.size();
  bool any = events_file_.read([&](const Json& record) { events_.take(record); });
  if (events_.is_empty())
    fail(ExitCode::kUnusable, "[report] {} holds no run that was started; give folders such as runs/demo",
         folder_);
  numbers_.forget(events_.kept_steps());
  any |= metrics_file_.read([&](const Json& record) { numbers_.take(record, events_); }, metrics_end);
  any |= evals_file_.read([&](const Json& record) { numbers_.take_beside(record); });
  return any;
}

void GrowingRun::begin_again(std::map<int64_t, int64_t> kept) {
  events_ = RunEvents(folder_);
  numbers_ = RunNumbers(patterns_, last_step_, std::move(kept));
  for (LineTail* file : {&events_file_, &metrics_file_, &evals_file_}) file->rewind();
}

RunSummary GrowingRun::summary() const {
  RunSummary run;
  events_.summarize(run);
  numbers_.summarize(run);
  find_nodes(run);
  find_work(run);
  return run;
}

const ThinCurve& RunSummary::curve(const std::string& metric) const {
  static const ThinCurve kNone;
  const auto found = curves.find(metric);
  return found == curves.end() ? kNone : found->second;
}

const std::vector<std::string>& standard_metrics() {
  static const std::vector<std::string> kMetrics = {"loss", "eval.loss", "lr", "grad_norm", "tokens_per_s"};
  return kMetrics;
}

RunSummary summarize_run(const std::string& folder, const std::vector<std::string>& patterns) {
  GrowingRun reader(folder, patterns);
  reader.update();
  return reader.summary();
}

}  // namespace tycho
