// Evaluation during training: passes over the sets, reports the results, and remembers the newest and the
// best.
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/nearest.h"
#include "trainer/icl/outputs.h"
#include "trainer/loop/trainer.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/line_file.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

/// The record with one more evaluation; the first of equals is the best, and NaN is worse than every number.
EvalRecord with(const EvalRecord* before, const EvalScore& score) {
  if (before == nullptr) return {score, score};
  const double best = before->best.loss;
  const bool is_better = score.loss < best || (std::isnan(best) && !std::isnan(score.loss));
  return {score, is_better ? score : before->best};
}

EvalScore score_of(const EvalResult& result, int64_t step) {
  return {result.loss, result.perplexity, result.tokens, step};
}

[[noreturn]] void fail_unknown(const std::string& name, const std::map<std::string, Evaluator>& evaluators) {
  std::vector<std::string> known;
  for (const auto& [one, evaluator] : evaluators) known.push_back(one);
  fail(ExitCode::kUsage, "[eval] wanted a set of eval_data, given \"{}\"{}; available: {}", name,
       did_you_mean(name, known), fmt::join(known, ", "));
}

}  // namespace

bool Trainer::measure_icl() {
  if (icl_ == nullptr) return true;
  const Range range("in-context evaluation");
  const InPhase phase("evaluating");
  const auto start = std::chrono::steady_clock::now();
  std::optional<IclResults> results;
  with_evaluated_weights([&] {
    results = icl_->evaluate({.model = config_.model,
                              .units = *units_,
                              .dtype = compute_dtype(config_.precision),
                              .device = context_.device,
                              .region = region(),
                              .stage = stage_,
                              .data_ranks = data_ranks_,
                              .world = context_.world,
                              .batch_tokens = micro_shape_.batch * micro_shape_.seq},
                             context_.stop);
  });
  throughput_.add_pause(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (!results) return false;
  Json facts = icl_json(*results);
  if (evaluates_average()) facts["weights"] = kAverageBuffer;
  context_.reporter.event("icl",
                          fmt::format("step {} measured{} in context: {}, in {:.1f} s", state_.step,
                                      evaluated_weights(), icl_summary(*results), results->seconds),
                          facts);
  for (const std::string& warning : not_finite_items(*results))
    context_.reporter.event("warning", fmt::format("step {}: {}", state_.step, warning),
                            {{"step", state_.step}});
  for (const auto& [name, value] : icl_metrics(*results)) context_.reporter.metric(state_.step, name, value);
  if (config_.icl.outputs && context_.world.rank() == 0) record_outputs(*results);
  return true;
}

void Trainer::record_outputs(const IclResults& results) {
  for (const IclTaskResult& task : results.tasks) {
    const NamedTable table = output_rows(task);
    context_.reporter.table(state_.step, table);
    context_.reporter.event("text",
                            fmt::format("step {} answered {}: all items are in {}/{}", state_.step, task.name,
                                        info_.run_dir, table.file),
                            {{"step", state_.step}, {"name", table.name}, {"text", output_table(task)}});
  }
}

std::optional<EvalResults> Trainer::evaluate(const std::string& only) {
  if (evaluators_.empty()) return std::nullopt;
  const auto found = evaluators_.find(only);
  if (!only.empty() && found == evaluators_.end()) fail_unknown(only, evaluators_);
  if (!only.empty() && evaluators_.size() > 1) {
    const std::optional<EvalResult> result = evaluate_set(only, found->second);
    if (!result) return std::nullopt;
    return EvalResults{{only, *result}};
  }
  announce(Event::kEvalStart);
  EvalResults results;
  for (auto& [name, evaluator] : evaluators_) {
    const std::optional<EvalResult> result = evaluate_set(name, evaluator);
    if (!result) return std::nullopt;
    results[name] = *result;
  }
  const EvalResult total = total_of(results);
  if (results.size() > 1) report_eval("", total);
  EvalRecords& records = state_.eval;
  records.total = with(records.total ? &*records.total : nullptr, score_of(total, state_.step));
  for (const auto& [name, result] : results) {
    const auto before = records.sets.find(name);
    records.sets[name] =
        with(before == records.sets.end() ? nullptr : &before->second, score_of(result, state_.step));
  }
  announce(Event::kEvalEnd);
  return results;
}

std::optional<EvalResult> Trainer::evaluate_set(const std::string& name, Evaluator& evaluator) {
  const Range range("evaluation");
  const InPhase phase("evaluating");
  const auto start = std::chrono::steady_clock::now();
  std::optional<EvalResult> result;
  with_evaluated_weights([&] { result = evaluator.evaluate(context_.stop); });
  throughput_.add_pause(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (result) report_eval(name, *result);
  return result;
}

// A set by its name, or "" for all of them. The only set is the total too.
void Trainer::report_eval(const std::string& name, const EvalResult& result) {
  Json facts = eval_json(result);
  if (!name.empty()) facts["name"] = name;
  const bool is_total = name.empty() || evaluators_.size() == 1;
  facts["total"] = is_total;
  if (evaluates_average()) facts["weights"] = kAverageBuffer;
  context_.reporter.event(
      "eval",
      fmt::format("step {} evaluated{}{}{}: loss {}, perplexity {}, {} tokens in {:.1f} s", state_.step,
                  evaluated_weights(), name.empty() ? "" : " on ", name, metric_text(result.loss),
                  metric_text(result.perplexity), result.tokens, result.seconds),
      facts);
  if (const std::string warning = not_finite_loss(result, name); !name.empty() && !warning.empty())
    context_.reporter.event("warning", fmt::format("step {}: {}", state_.step, warning),
                            {{"step", state_.step}});
  if (is_total) record_figures("eval.", result);
  if (!name.empty()) record_figures("eval." + name + ".", result);
}

// Points of curves like any other: tycho ctl RUN plot eval.loss.
void Trainer::record_figures(const std::string& prefix, const EvalResult& result) {
  context_.reporter.metric(state_.step, prefix + "loss", result.loss);
  context_.reporter.metric(state_.step, prefix + "perplexity", result.perplexity);
}

}  // namespace tycho
