// Reads events.jsonl, metrics.jsonl and env.json line by line; torn lines are skipped.
#include "trainer/report/run_summary.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/text/json_number.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

void for_each_record(const std::string& path, const std::function<void(const Json&)>& take) {
  if (!fs::exists(path)) return;
  const std::string text = read_file(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const Json record = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                    text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (record.is_object()) take(record);
    begin = end + 1;
  }
}

/// Returns a whole number of a record; 0 when it is none.
int64_t count_in(const Json& record, const char* key) {
  const double value = number_in(record, key).value_or(0);
  return std::abs(value) <= 0x1p62 ? static_cast<int64_t>(value) : 0;
}

/// Returns the mean of the finite values in the last tenth; NaN when there are none.
double late_mean(const std::vector<double>& values) {
  const size_t count = std::max<size_t>(1, values.size() / 10);
  double mean = 0, num = 0;
  for (size_t i = values.size() - count; i < values.size(); ++i)
    if (std::isfinite(values[i])) ++num, mean += values[i] / num - mean / num;
  return num > 0 ? mean : NAN;
}

std::string text_in(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Values by step. A later attempt replaces the steps that it trained again.
class Series {
 public:
  void add(int64_t step, int64_t attempt, double value) {
    const auto x = static_cast<double>(step);
    auto at = curve_.x.end();
    if (!curve_.x.empty() && curve_.x.back() >= x) at = std::lower_bound(curve_.x.begin(), curve_.x.end(), x);
    const std::ptrdiff_t index = at - curve_.x.begin();
    if (attempt > attempt_) {
      curve_.x.resize(static_cast<size_t>(index)), curve_.y.resize(static_cast<size_t>(index));
      at = curve_.x.end();
    }
    attempt_ = std::max(attempt, attempt_);
    if (at != curve_.x.end() && *at == x) {
      curve_.y[static_cast<size_t>(index)] = value;
      return;
    }
    curve_.x.insert(at, x);
    curve_.y.insert(curve_.y.begin() + index, value);
  }
  const Curve& curve() const { return curve_; }

 private:
  int64_t attempt_ = 0;
  Curve curve_;  // in the order of steps
};

/// The steps of the newest attempt, from which the steady numbers are computed.
struct SteadySteps {
  int64_t attempt = 0;
  std::vector<double> tokens_per_s, mfu, step_s, data_wait_s;

  static std::vector<double> without_start(const std::vector<double>& values) {
    return {values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4), values.end()};
  }
  static std::optional<double> steady(const std::vector<double>& values) {
    return values.empty() ? std::nullopt : std::optional(median_of(without_start(values)));
  }
  static double sum(const std::vector<double>& values) {
    double total = 0;
    for (const double value : without_start(values)) total += value;
    return total;
  }
};

class FolderReader {
 public:
  FolderReader(const std::string& folder, const std::vector<std::string>& patterns) : patterns_(patterns) {
    run_.folder = folder;
    for_each_record(folder + "/events.jsonl", [&](const Json& record) { take_event(record); });
    if (run_.num_attempts == 0)
      fail(ExitCode::kUnusable, "[report] {} holds no run that was started; give folders such as runs/demo",
           folder);
    for_each_record(folder + "/metrics.jsonl", [&](const Json& record) { take_metrics(record); });
    // Of a process beside the run, which evaluates each step once.
    for_each_record(folder + "/evals.jsonl",
                    [&](const Json& record) { take_curves(record, count_in(record, "step"), 0); });
    choose_start();
    for (const auto& [attempt, span] : spans_) run_.runtime_s += span.second - span.first;
    find_nodes();
    find_work();
  }

  RunSummary summary() {
    for (const auto& [metric, series] : series_) run_.curves[metric] = series.curve();
    run_.tokens_by_step = tokens_.curve();
    run_.seconds_by_step = seconds_.curve();
    if (const std::vector<double>& y = run_.curve("loss").y; !y.empty()) run_.loss = late_mean(y);
    if (const Curve& evals = run_.curve("eval.loss"); !evals.y.empty()) run_.eval_loss = evals.y.back();
    if (!accuracies_.empty()) {
      double total = 0;
      for (const auto& [name, value] : accuracies_) total += value;
      run_.accuracy = total / static_cast<double>(accuracies_.size());
    }
    run_.tokens_per_s = SteadySteps::steady(steady_.tokens_per_s);
    run_.mfu = SteadySteps::steady(steady_.mfu);
    if (const double seconds = SteadySteps::sum(steady_.step_s); seconds > 0 && std::isfinite(seconds))
      run_.data_wait_share = SteadySteps::sum(steady_.data_wait_s) / seconds;
    return std::move(run_);
  }

 private:
  /// One start of the run, from its events.
  struct Start {
    Json facts;  // facts of run_start
    std::string end;
    bool has_trained = false;
  };

  void take_event(const Json& record) {
    see(record);
    const std::string kind = text_in(record, "kind");
    if (kind == kNotStarted) return;
    const auto facts = record.find("facts");
    if (kind == "run_start") {
      if (run_.num_attempts == 0 && facts != record.end() && facts->is_object())
        run_.first_step = count_in(*facts, "first_step");
      run_.num_attempts += 1;
      starts_.push_back({facts != record.end() && facts->is_object() ? *facts : Json::object(), "", false});
    }
    take_text(record, kind);
    if (starts_.empty()) return;
    Start& start = starts_.back();
    if (kind == "run_end") start.end = text_in(record, "text");
    const double first_step = number_in(start.facts, "first_step").value_or(0);
    start.has_trained |= kind != "run_start" && number_in(record, "step").value_or(0) > first_step;
    if (kind == "checkpoint" && facts != record.end() && facts->is_object())
      run_.checkpoint_bytes = count_in(*facts, "bytes");
    if (kind == "resume" && run_.num_attempts == 1 && facts != record.end() && facts->is_object())
      take_parent(text_in(*facts, "path"));
    attempts_[count_in(record, "attempt")] = starts_.size() - 1;
  }

  /// Keeps a recorded text. A start drops those of steps that it trains again.
  void take_text(const Json& record, const std::string& kind) {
    const auto facts = record.find("facts");
    if (facts == record.end() || !facts->is_object()) return;
    const bool starts = kind == "run_start" && facts->contains("first_step");
    const int64_t step = starts ? count_in(*facts, "first_step") : count_in(record, "step");
    const std::string name = text_in(*facts, "name");
    if (!starts && kind != "text") return;
    std::erase_if(run_.texts, [&](const RecordedText& one) {
      return starts ? one.step > step : one.step == step && one.prompt == name;
    });
    if (!starts) run_.texts.push_back({step, name, text_in(*facts, "text")});
  }

  /// Chooses the start that describes the run: the newest one that did a step, or the newest of all.
  void choose_start() {
    const auto trained =
        std::find_if(starts_.rbegin(), starts_.rend(), [](const Start& start) { return start.has_trained; });
    const Start& start = trained == starts_.rend() ? starts_.back() : *trained;
    const auto count = [&](const char* key) { return count_in(start.facts, key); };
    run_.name = text_in(start.facts, "run_name");
    run_.device = text_in(start.facts, "device");
    run_.precision = text_in(start.facts, "precision");
    run_.num_ranks = std::max<int64_t>(1, count("num_ranks"));
    run_.num_params = count("num_params");
    run_.total_steps = count("total_steps");
    run_.end = start.end;
  }

  void take_metrics(const Json& record) {
    see(record);
    const auto step = count_in(record, "step");
    const auto attempt = count_in(record, "attempt");
    take_curves(record, step, attempt);
    for (const auto& [key, value] : record.items()) {
      std::string lower = key;
      std::transform(lower.begin(), lower.end(), lower.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      if (value.is_number() && lower.find("accuracy") != std::string::npos)
        accuracies_[key] = value.get<double>();
    }
    const auto loss = number_in(record, "loss");
    if (!loss) return;
    if (const auto start = attempts_.find(attempt); start != attempts_.end())
      starts_[start->second].has_trained = true;
    run_.step = step;
    run_.tokens = count_in(record, "tokens");
    tokens_.add(step, attempt, static_cast<double>(run_.tokens));
    seconds_.add(step, attempt, trained_s(record, attempt));
    // Steps have the same number of tokens, as far as the first record can tell.
    if (!parents_tokens_) parents_tokens_ = run_.tokens / std::max<int64_t>(1, step) * run_.first_step;
    run_.own_tokens = run_.tokens - *parents_tokens_;
    run_.memory_bytes = std::max(run_.memory_bytes, count_in(record, "memory_bytes"));
    if (attempt != steady_.attempt) steady_ = {attempt, {}, {}, {}, {}};
    if (const auto speed = number_in(record, "tokens_per_s")) steady_.tokens_per_s.push_back(*speed);
    if (const auto mfu = number_in(record, "mfu")) steady_.mfu.push_back(*mfu);
    steady_.step_s.push_back(number_in(record, "step_s").value_or(0));
    steady_.data_wait_s.push_back(number_in(record, "data_wait_s").value_or(0));
  }

  /// Returns the seconds from the first start to a record, without the pauses between attempts.
  double trained_s(const Json& record, int64_t attempt) {
    const auto span = spans_.find(attempt);
    if (span == spans_.end()) return 0;
    double seconds = number_in(record, "time").value_or(span->second.first) - span->second.first;
    for (auto earlier = spans_.begin(); earlier != span; ++earlier)
      seconds += earlier->second.second - earlier->second.first;
    return seconds;
  }

  void take_curves(const Json& record, int64_t step, int64_t attempt) {
    for (const auto& [name, given] : record.items()) {
      const std::optional<double> value = number_in(record, name);
      if (value && is_wanted(name)) series_[name].add(step, attempt, *value);
    }
  }

  bool is_wanted(const std::string& name) {
    const auto [known, is_new] = wanted_.try_emplace(name, false);
    static const std::set<std::string> kNoMetrics = {"step", "attempt", "time", "tokens", "samples", "epoch"};
    if (is_new && !kNoMetrics.contains(name)) {
      const std::vector<std::string>& always = standard_metrics();
      known->second = std::find(always.begin(), always.end(), name) != always.end() ||
                      std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
                        return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
                      });
    }
    return known->second;
  }

  /// `path` is that of the checkpoint, RUN/checkpoints/NAME.
  void take_parent(const std::string& path) {
    const fs::path folder = fs::path(path).parent_path().parent_path();
    std::error_code ignored;
    if (!folder.empty() && !fs::equivalent(folder, run_.folder, ignored)) run_.parent = folder.string();
  }

  void find_work() {
    const std::string path = run_.folder + "/recipe.json";
    if (!fs::exists(path)) return;
    const Json recipe = Json::parse(read_file(path), nullptr, false);
    if (!recipe.is_object()) return;
    run_.recipe = recipe;
    Json work = Json::object();
    for (const char* key : {"model", "lora", "seq_len", "precision"})
      if (recipe.contains(key)) work[key] = recipe[key];
    if (work.contains("model") && work["model"].is_object()) work["model"].erase("weights");
    run_.work = work.dump();
  }

  /// Extends the time span of the record's attempt.
  void see(const Json& record) {
    const auto time = number_in(record, "time");
    const auto attempt = count_in(record, "attempt");
    if (!time || attempt == 0) return;
    const auto [span, is_new] = spans_.try_emplace(attempt, *time, *time);
    span->second.second = std::max(span->second.second, *time);
  }

  /// Finds the number of nodes in the launcher's variables, which env.json keeps.
  void find_nodes() {
    const std::string path = run_.folder + "/env.json";
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
      run_.num_nodes = (run_.num_ranks + per_node - 1) / per_node;
    else if (const int64_t nodes = count("SLURM_STEP_NUM_NODES"); nodes > 0)
      run_.num_nodes = nodes;
  }

  RunSummary run_;
  std::vector<Start> starts_;
  std::map<int64_t, size_t> attempts_;                  // number of an attempt -> its index in starts_
  std::map<int64_t, std::pair<double, double>> spans_;  // of each attempt, in seconds since 1970
  const std::vector<std::string>& patterns_;
  std::map<std::string, bool> wanted_;     // by metric
  std::map<std::string, Series> series_;   // by metric
  Series tokens_, seconds_;                // trained so far
  std::optional<int64_t> parents_tokens_;  // of a fork; 0 without a parent
  std::map<std::string, double> accuracies_;
  SteadySteps steady_;
};

}  // namespace

const Curve& RunSummary::curve(const std::string& metric) const {
  static const Curve kNone;
  const auto found = curves.find(metric);
  return found == curves.end() ? kNone : found->second;
}

const std::vector<std::string>& standard_metrics() {
  static const std::vector<std::string> kMetrics = {"loss", "eval.loss", "lr", "grad_norm", "tokens_per_s"};
  return kMetrics;
}

RunSummary summarize_run(const std::string& folder, const std::vector<std::string>& patterns) {
  return FolderReader(folder, patterns).summary();
}

}  // namespace tycho
