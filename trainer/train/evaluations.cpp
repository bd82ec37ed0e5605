// Passes over the sets, reports the results, and notes the newest and the best.
#include "trainer/train/evaluations.h"

#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"
#include "trainer/base/seconds_since.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/metrics/format.h"
#include "trainer/profiler/range.h"
#include "trainer/recipe/ema_steps.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/tasks/outputs.h"
#include "trainer/train/train_units.h"

namespace tycho {
namespace {

/// Returns the record with one more evaluation. The first of equals is the best, and NaN is worse than every
/// number.
EvalRecord with(const EvalRecord* before, const EvalScore& score) {
  if (before == nullptr) return {score, score};
  const double best = before->best.loss;
  const bool is_better = score.loss < best || (std::isnan(best) && !std::isnan(score.loss));
  return {score, is_better ? score : before->best};
}

EvalScore score_of(const EvalResult& result, int64_t step) {
  return {result.loss, result.perplexity, result.tokens, step, result.bits_per_byte()};
}

[[noreturn]] void fail_unknown(const std::string& name, const std::map<std::string, Evaluator>& sets) {
  std::vector<std::string> known;
  for (const auto& [one, evaluator] : sets) known.push_back(one);
  fail(ExitCode::kUsage, "[eval] expected a set of eval_data, got \"{}\"; available: {}{}", name,
       fmt::join(known, ", "), did_you_mean(name, known));
}

}  // namespace

Evaluations::Evaluations(const TrainConfig& recipe, std::string run_dir, const LoopContext& context,
                         Model& model, UnitStore& units, WeightAverage* average, Throughput& throughput)
    : recipe_(recipe),
      run_dir_(std::move(run_dir)),
      context_(context),
      model_(model),
      units_(units),
      average_(average),
      throughput_(throughput) {}

void Evaluations::open() {
  const InPhase phase("opening data");
  sets_.clear();
  const Mesh& mesh = context_.mesh;
  TokenTexts texts;
  if (!recipe_.eval_data.empty())
    texts = token_texts(recipe_.tokenizer, model_.layout().vocab_size, context_.device);
  for (const auto& [name, data] : recipe_.eval_data)
    sets_.try_emplace(name, data, recipe_.eval.batches * global_batch_sequences(recipe_),
                      micro_batch_shape(recipe_, mesh), model_, mesh.group(kDataAxes), mesh.group(kLossAxes),
                      context_.world, context_.device, context_.opened, texts, "eval_data." + name);
  if (tasks_ == nullptr && !recipe_.icl.tasks.empty())
    tasks_ = std::make_unique<IclEvaluator>(recipe_.icl, load_tokenizer(recipe_.tokenizer),
                                            model_.layout().vocab_size, longest_sequence(recipe_));
}

bool Evaluations::is_one_of_several(const std::string& name) const {
  if (name.empty()) return false;
  if (!sets_.contains(name)) fail_unknown(name, sets_);
  return sets_.size() > 1;
}

std::optional<EvalResults> Evaluations::evaluate(int64_t step, EvalRecords& records) {
  EvalResults results;
  for (auto& [name, set] : sets_) {
    const std::optional<EvalResult> result = evaluate_set(name, set, step);
    if (!result) return std::nullopt;
    results[name] = *result;
  }
  const EvalResult total = total_of(results);
  if (results.size() > 1) report("", total, step);
  records.total = with(records.total ? &*records.total : nullptr, score_of(total, step));
  for (const auto& [name, result] : results) {
    const auto before = records.sets.find(name);
    records.sets[name] =
        with(before == records.sets.end() ? nullptr : &before->second, score_of(result, step));
  }
  return results;
}

std::optional<EvalResults> Evaluations::evaluate_one(const std::string& name, int64_t step) {
  const std::optional<EvalResult> result = evaluate_set(name, sets_.at(name), step);
  if (!result) return std::nullopt;
  return EvalResults{{name, *result}};
}

const char* Evaluations::evaluated_weights() const {
  if (!is_of_average()) return "";
  return has_eval_weights(recipe_.optimizer) ? " the weights of eval_weights" : " the average of the weights";
}

// The weights are asked for with owned(), since what was gathered of others is old from there on.
void Evaluations::with_evaluated_weights(const std::function<void()>& measure) {
  if (!is_of_average()) return measure();
  units_.owned();
  average_->put_in_place();
  const auto put_back = [&] {
    units_.owned();
    average_->put_back();
  };
  try {
    measure();
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

bool Evaluations::evaluate_tasks(int64_t step) {
  if (tasks_ == nullptr) return true;
  const Range range("in-context evaluation");
  const InPhase phase("evaluating");
  const auto start = std::chrono::steady_clock::now();
  const BatchShape shape = micro_batch_shape(recipe_, context_.mesh);
  std::optional<IclResults> results;
  with_evaluated_weights([&] {
    results = tasks_->evaluate({.model = recipe_.model,
                                .units = units_,
                                .dtype = compute_dtype(recipe_.precision),
                                .device = context_.device,
                                .region = parallel_region(recipe_, context_.mesh),
                                .stage = pp_stage(recipe_, context_.mesh),
                                .data_ranks = context_.mesh.group(kDataAxes),
                                .world = context_.world,
                                .batch_tokens = shape.tokens()},
                               context_.stop);
  });
  throughput_.add_pause(seconds_since(start));
  if (!results) return false;
  Json facts = icl_json(*results);
  if (is_of_average()) facts["weights"] = kAverageBuffer;
  context_.reporter.event("icl",
                          fmt::format("step {} measured{} in context: {}, in {:.1f} s", step,
                                      evaluated_weights(), icl_summary(*results), results->seconds),
                          facts);
  for (const std::string& warning : not_finite_items(*results))
    context_.reporter.event("warning", fmt::format("step {}: {}", step, warning), {{"step", step}});
  for (const auto& [name, value] : icl_metrics(*results)) context_.reporter.metric(step, name, value);
  if (recipe_.icl.outputs && context_.world.rank() == 0) report_outputs(*results, step);
  return true;
}

void Evaluations::report_outputs(const IclResults& results, int64_t step) {
  for (const IclTaskResult& task : results.tasks) {
    const NamedTable table = output_rows(task);
    context_.reporter.table(step, table);
    context_.reporter.event(
        "text",
        fmt::format("step {} answered {}: all items are in {}/{}", step, task.name, run_dir_, table.file),
        {{"step", step}, {"name", table.name}, {"text", output_table(task)}});
  }
}

std::optional<EvalResult> Evaluations::evaluate_set(const std::string& name, Evaluator& set, int64_t step) {
  const Range range("evaluation");
  const InPhase phase("evaluating");
  const auto start = std::chrono::steady_clock::now();
  std::optional<EvalResult> result;
  with_evaluated_weights([&] { result = set.evaluate(context_.stop); });
  throughput_.add_pause(seconds_since(start));
  if (result) report(name, *result, step);
  return result;
}

// A set by its name, or "" for all of them. The only set is the total too.
void Evaluations::report(const std::string& name, const EvalResult& result, int64_t step) {
  Json facts = eval_json(result);
  if (!name.empty()) facts["name"] = name;
  const bool is_total = name.empty() || sets_.size() == 1;
  const std::optional<double> bits = result.bits_per_byte();
  facts["total"] = is_total;
  if (is_of_average()) facts["weights"] = kAverageBuffer;
  context_.reporter.event(
      "eval",
      fmt::format("step {} evaluated{}{}{}: loss {}, perplexity {}, {}{} tokens in {:.1f} s", step,
                  evaluated_weights(), name.empty() ? "" : " on ", name, metric_text(result.loss),
                  metric_text(result.perplexity), bits ? metric_text(*bits) + " bits per byte, " : "",
                  result.tokens, result.seconds),
      facts);
  if (const std::string warning = not_finite_loss(result, name); !name.empty() && !warning.empty())
    context_.reporter.event("warning", fmt::format("step {}: {}", step, warning), {{"step", step}});
  if (is_total) report_figures("eval.", result, step);
  if (!name.empty()) report_figures("eval." + name + ".", result, step);
}

// Points of curves like any other: tycho ctl RUN plot eval.loss.
void Evaluations::report_figures(const std::string& prefix, const EvalResult& result, int64_t step) {
  context_.reporter.metric(step, prefix + "loss", result.loss);
  context_.reporter.metric(step, prefix + "perplexity", result.perplexity);
  if (const auto bits = result.bits_per_byte())
    context_.reporter.metric(step, prefix + "bits_per_byte", *bits);
  for (const auto& [name, mean] : result.means()) context_.reporter.metric(step, prefix + name, mean);
}

void forget_other_sets(EvalRecords& records, const EvalData& sets) {
  const size_t before = records.sets.size();
  std::erase_if(records.sets, [&](const auto& one) { return !sets.contains(one.first); });
  if (before != sets.size() || records.sets.size() != sets.size()) records.total.reset();
}

}  // namespace tycho
