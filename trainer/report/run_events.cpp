// Reads what events say of a run, and when.
#include "trainer/report/run_events.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "trainer/base/text/json_number.h"
#include "trainer/metrics/line_file.h"

namespace tycho {

namespace fs = std::filesystem;

int64_t count_in(const Json& record, const char* key) {
  const double value = number_in(record, key).value_or(0);
  return std::abs(value) <= 0x1p62 ? static_cast<int64_t>(value) : 0;
}

std::string text_in(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

void RunEvents::take(const Json& record) {
  see(record);
  const std::string kind = text_in(record, "kind");
  if (kind == kNotStarted) return;
  const auto found = record.find("facts");
  const Json facts = found != record.end() && found->is_object() ? *found : Json::object();
  const int64_t attempt = count_in(record, "attempt");
  if (kind == "run_start") {
    if (num_attempts_++ == 0) first_step_ = count_in(facts, "first_step");
    starts_.push_back({attempt, facts, "", false});
  }
  take_text(record, kind);
  if (starts_.empty()) return;
  Start& start = starts_.back();
  if (kind == "run_end") start.end = text_in(record, "text");
  const double first_step = number_in(start.facts, "first_step").value_or(0);
  start.has_trained |= kind != "run_start" && number_in(record, "step").value_or(0) > first_step;
  if (kind == "checkpoint" && !facts.empty()) checkpoint_bytes_ = count_in(facts, "bytes");
  if (kind == "eval") evaluated_weights_ = text_in(facts, "weights");
  if (kind == "resume" && num_attempts_ == 1) take_parent(text_in(facts, "path"));
  attempts_[attempt] = starts_.size() - 1;
}

// A start drops the texts of steps that it trains again.
void RunEvents::take_text(const Json& record, const std::string& kind) {
  const auto facts = record.find("facts");
  if (facts == record.end() || !facts->is_object()) return;
  const bool starts = kind == "run_start" && facts->contains("first_step");
  const int64_t step = starts ? count_in(*facts, "first_step") : count_in(record, "step");
  const std::string name = text_in(*facts, "name");
  if (!starts && kind != "text") return;
  std::erase_if(texts_, [&](const RecordedText& one) {
    return starts ? one.step > step : one.step == step && one.prompt == name;
  });
  if (!starts) texts_.push_back({step, name, text_in(*facts, "text")});
}

/// `path` is that of the checkpoint, RUN/checkpoints/NAME.
void RunEvents::take_parent(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path().parent_path();
  std::error_code ignored;
  if (!folder.empty() && !fs::equivalent(folder, folder_, ignored)) parent_ = folder.string();
}

void RunEvents::see(const Json& record) {
  const auto time = number_in(record, "time");
  const auto attempt = count_in(record, "attempt");
  if (!time || attempt == 0) return;
  const auto [span, is_new] = spans_.try_emplace(attempt, *time, *time);
  span->second.second = std::max(span->second.second, *time);
}

void RunEvents::has_trained(int64_t attempt) {
  if (const auto start = attempts_.find(attempt); start != attempts_.end())
    starts_[start->second].has_trained = true;
}

std::map<int64_t, int64_t> RunEvents::kept_steps() const {
  std::map<int64_t, int64_t> steps;
  for (const Start& start : starts_)
    if (start.has_trained && start.facts.contains("first_step"))
      steps[start.attempt] = count_in(start.facts, "first_step");
  return steps;
}

int64_t RunEvents::first_step_of(int64_t attempt, int64_t otherwise) const {
  const auto start = attempts_.find(attempt);
  if (start == attempts_.end() || !starts_[start->second].facts.contains("first_step")) return otherwise;
  return count_in(starts_[start->second].facts, "first_step");
}

double RunEvents::trained_s(double time, int64_t attempt) const {
  const auto span = spans_.find(attempt);
  if (span == spans_.end()) return 0;
  double seconds = time - span->second.first;
  for (auto earlier = spans_.begin(); earlier != span; ++earlier)
    seconds += earlier->second.second - earlier->second.first;
  return seconds;
}

// The newest start that did a step describes the run, or the newest of all.
void RunEvents::summarize(RunSummary& run) const {
  const auto trained =
      std::find_if(starts_.rbegin(), starts_.rend(), [](const Start& start) { return start.has_trained; });
  const Start& start = trained == starts_.rend() ? starts_.back() : *trained;
  run.folder = folder_;
  run.name = text_in(start.facts, "run_name");
  run.device = text_in(start.facts, "device");
  run.precision = text_in(start.facts, "precision");
  run.num_ranks = std::max<int64_t>(1, count_in(start.facts, "num_ranks"));
  run.num_params = count_in(start.facts, "num_params");
  run.planned_memory_bytes = count_in(start.facts, "planned_memory_bytes");
  run.total_steps = count_in(start.facts, "total_steps");
  run.end = start.end;
  run.parent = parent_;
  run.num_attempts = num_attempts_;
  run.first_step = first_step_;
  run.checkpoint_bytes = checkpoint_bytes_;
  run.texts = texts_;
  run.evaluated_weights = evaluated_weights_;
  for (const auto& [attempt, span] : spans_) run.runtime_s += span.second - span.first;
}

}  // namespace tycho
