// Looks at a run's folder once a second.
#include "host/follow_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "host/engine.h"
#include "host/standard_streams.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/text/json_number.h"
#include "trainer/lock/owner_watch.h"
#include "trainer/metrics/line_file.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::milliseconds kPause{200};
constexpr int kPausesBetweenLooks = 5;

/// Returns true when the newest process of the run has recorded its end. A killed process records none.
bool has_ended(const std::string& run_dir) {
  const std::string path = run_dir + "/events.jsonl";
  if (!fs::exists(path)) return false;
  constexpr int64_t kMostBytes = 1 << 16;
  const auto size = static_cast<int64_t>(fs::file_size(path));
  const int64_t begin = std::max<int64_t>(0, size - kMostBytes);
  std::string text(static_cast<size_t>(size - begin), '\0');
  read_exactly(path, begin, text.data(), text.size());
  bool ended = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line, nullptr, false);
    if (!record.is_object()) continue;  // the first one may be cut
    const std::string kind = record.value("kind", "");
    if (kind == "run_end" || kind == kNotStarted) ended = true;
    if (kind == "run_start") ended = false;
  }
  return ended;
}

/// Returns the oldest checkpoint that is wanted and not done.
std::optional<CheckpointInfo> next_checkpoint(const std::string& run_dir, const std::set<std::string>& done,
                                              const std::function<bool(const CheckpointInfo&)>& is_wanted) {
  std::optional<CheckpointInfo> next;
  for (CheckpointInfo& info : list_checkpoints(run_dir + "/checkpoints"))  // the newest first
    if (!done.contains(info.path) && is_wanted(info)) next = std::move(info);
  return next;
}

/// Returns the steps in an evals.jsonl whose trained (or, with `ema`, averaged) weights were evaluated.
std::set<int64_t> steps_in(const std::string& path, bool ema) {
  std::set<int64_t> steps;
  if (!fs::exists(path)) return steps;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line, nullptr, false);
    if (record.is_object() && record.contains("step") && record["step"].is_number() &&
        record.contains("weights") == ema)
      steps.insert(record["step"].get<int64_t>());
  }
  return steps;
}

Json record_of(const EvalAnswer& answer, bool ema) {
  Json record = {{"step", answer.step}, {"time", now_s()}, {"checkpoint", answer.checkpoint}};
  if (ema) record["weights"] = "ema";
  const EvalResult total = total_of(answer.results);
  const auto add = [&](const std::string& prefix, const EvalResult& result) {
    set_number(record, prefix + "loss", result.loss);
    set_number(record, prefix + "perplexity", result.perplexity);
    if (const auto bits = result.bits_per_byte()) set_number(record, prefix + "bits_per_byte", *bits);
  };
  add("eval.", total);
  for (const auto& [name, result] : answer.results)
    if (!name.empty()) add("eval." + name + ".", result);
  return record;
}

/// Watches the owner of a run. Reports once that it is gone; is_final() returns true when the run counts as
/// killed.
class KilledRun {
 public:
  explicit KilledRun(const std::string& run_dir) : watch_(run_dir) {}
  bool is_final() {
    const std::optional<OwnerWatch::Absence> absence = watch_.look();
    const std::string owner = absence ? absence->owner : "";
    if (absence && absence->is_final) {
      fmt::print(
          stderr,
          "the run did not record its end, and {} is gone, so this command ends too. Repeat it when the run "
          "has been started again\n",
          owner);
      return true;
    }
    if (owner != told_ && absence)
      fmt::print(stderr, "{} is gone: waiting {:.0f} s for the run to be started again\n", owner,
                 RunLock::kStale_s);
    told_ = owner;
    return false;
  }

 private:
  OwnerWatch watch_;
  std::string told_;
};

}  // namespace

int follow_checkpoints(const std::string& run_dir, const StopFlag& stop,
                       const std::function<bool(const CheckpointInfo&)>& is_wanted,
                       const std::function<void(const CheckpointInfo&)>& take) {
  never_wait_for_readers();
  if (is_hub_name(run_dir) || (fs::exists(run_dir) && !fs::is_directory(run_dir)))
    fail(ExitCode::kUsage, "[follow] {} is not a folder; give that of a run", run_dir);
  if (!fs::exists(run_dir + "/events.jsonl"))
    fmt::print(stderr, "waiting for a run in {}; Ctrl-C ends this\n", run_dir);
  std::set<std::string> done;
  KilledRun killed(run_dir);
  while (stop == 0) {
    const bool ended = has_ended(run_dir);  // read before listing, so that the last checkpoint is not missed
    const std::optional<CheckpointInfo> next = next_checkpoint(run_dir, done, is_wanted);
    if (next) {
      done.insert(next->path);
      try {
        take(*next);
      } catch (const Error&) {
        if (fs::exists(next->path + "/COMMIT")) throw;
        fmt::print(stderr, "step {}: the checkpoint was removed meanwhile; ckpt.keep says how many stay\n",
                   next->step);
      }
      continue;
    }
    if (ended || killed.is_final()) return 0;
    for (int i = 0; i < kPausesBetweenLooks && stop == 0; ++i) std::this_thread::sleep_for(kPause);
  }
  return 128 + stop;
}

void skip_without_average(const CheckpointInfo& info) {
  fmt::print(stderr, "step {}: the checkpoint keeps no average of the weights\n", info.step);
}

int follow_evaluations(EvalRequest request, const StopFlag& stop) {
  const std::string run_dir = request.path, path = run_dir + "/evals.jsonl";
  const EngineApi& engine = open_engine(request.threads);
  std::set<int64_t> steps = steps_in(path, request.ema);
  const auto is_wanted = [&](const CheckpointInfo& info) { return !steps.contains(info.step); };
  return follow_checkpoints(run_dir, stop, is_wanted, [&](const CheckpointInfo& info) {
    if (request.ema && !has_average(info)) return skip_without_average(info);
    request.path = info.path;
    const std::optional<EvalAnswer> answer = engine.evaluate(request, stop);
    if (!answer) return;
    LineFile(real_files(), path).write(record_of(*answer, request.ema).dump());
    steps.insert(info.step);
    const EvalResult total = total_of(answer->results);
    for (const std::string& warning : not_finite_losses(answer->results, fmt::format("step {}", info.step)))
      fmt::print(stderr, "warning: {}\n", warning);
    const std::optional<double> bits = total.bits_per_byte();
    fmt::print("step {}: loss {:.6f}  perplexity {:.4f}{}\n", info.step, total.loss, total.perplexity,
               bits ? fmt::format("  {:.4f} bits per byte", *bits) : "");
    std::fflush(stdout);
  });
}

}  // namespace tycho
