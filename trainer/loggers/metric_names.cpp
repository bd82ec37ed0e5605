// One table of names: Composer 0.32 with the speed, learning rate and memory monitors and the runtime
// estimator, TorchTitan 0.2, Nanotron as of 2025.
#include "trainer/loggers/metric_names.h"

#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

namespace tycho {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Now {
  const StepMetrics& step;
  const RunInfo& run;
  double ranks() const { return static_cast<double>(run.num_ranks); }
  double tokens_of_step() const {
    return run.total_steps > 0 ? static_cast<double>(run.total_tokens) / static_cast<double>(run.total_steps)
                               : kNone;
  }
};

/// A number under another system's name; `optional` ones are left out while unknown.
struct Naming {
  const char* name;
  double (*value)(const Now&);
  bool optional = false;
};

// The name of the learning rate has the optimizer's class in it: see optimizer_class.
constexpr std::string_view kLrPrefix = "lr-";

const Naming kComposer[] = {
    {"loss/train/total", [](const Now& n) { return n.step.loss; }},
    {"metrics/train/LanguageCrossEntropy", [](const Now& n) { return n.step.loss; }},
    {"metrics/train/LanguagePerplexity", [](const Now& n) { return std::exp(n.step.loss); }},
    {"lr-", [](const Now& n) { return n.step.lr; }},
    {"l2_norm/grad/global", [](const Now& n) { return n.step.grad_norm; }},
    {"time/batch", [](const Now& n) { return static_cast<double>(n.step.step); }},
    {"time/sample", [](const Now& n) { return static_cast<double>(n.step.samples); }},
    {"time/token", [](const Now& n) { return static_cast<double>(n.step.tokens); }},
    {"time/epoch", [](const Now& n) { return static_cast<double>(n.step.epoch); }},
    {"time/secs_per_step", [](const Now& n) { return n.step.step_s; }},
    {"time/remaining_estimate", [](const Now& n) { return n.step.eta_s / 3600; }},
    {"throughput/tokens_per_sec", [](const Now& n) { return n.step.tokens_per_s; }},
    {"throughput/device/tokens_per_sec", [](const Now& n) { return n.step.tokens_per_s / n.ranks(); }},
    {"throughput/batches_per_sec", [](const Now& n) { return n.step.tokens_per_s / n.tokens_of_step(); },
     true},
    {"throughput/device/batches_per_sec",
     [](const Now& n) { return n.step.tokens_per_s / n.tokens_of_step() / n.ranks(); }, true},
    {"throughput/flops_per_sec", [](const Now& n) { return n.step.tflops * 1e12; }},
    {"throughput/device/flops_per_sec", [](const Now& n) { return n.step.tflops * 1e12 / n.ranks(); }},
    {"throughput/device/mfu", [](const Now& n) { return n.step.mfu.value_or(kNone); }, true},
    {"memory/peak_allocated_mem",
     [](const Now& n) { return static_cast<double>(n.step.memory_bytes) / 1e9; }},
};

const Naming kTorchtitan[] = {
    {"loss_metrics/global_avg_loss", [](const Now& n) { return n.step.loss; }},
    {"grad_norm", [](const Now& n) { return n.step.grad_norm; }},
    {"lr", [](const Now& n) { return n.step.lr; }},
    {"n_tokens_seen", [](const Now& n) { return static_cast<double>(n.step.tokens); }},
    {"throughput(tps)", [](const Now& n) { return n.step.tokens_per_s / n.ranks(); }},
    {"tflops", [](const Now& n) { return n.step.tflops / n.ranks(); }},
    {"mfu(%)", [](const Now& n) { return 100 * n.step.mfu.value_or(kNone); }, true},
    {"time_metrics/end_to_end(s)", [](const Now& n) { return n.step.step_s; }},
    {"time_metrics/data_loading(s)", [](const Now& n) { return n.step.data_wait_s; }},
    {"time_metrics/data_loading(%)", [](const Now& n) { return 100 * n.step.data_wait_s / n.step.step_s; },
     true},
};

const Naming kNanotron[] = {
    {"consumed_tokens", [](const Now& n) { return static_cast<double>(n.step.tokens); }},
    {"time_per_iteration_ms", [](const Now& n) { return 1000 * n.step.step_s; }},
    {"tokens_per_sec", [](const Now& n) { return n.step.tokens_per_s; }},
    {"tokens_per_sec_per_gpu", [](const Now& n) { return n.step.tokens_per_s / n.ranks(); }},
    {"global_batch_size", [](const Now& n) { return n.tokens_of_step(); }, true},
    {"grad_norm", [](const Now& n) { return n.step.grad_norm; }},
    {"lm_loss", [](const Now& n) { return n.step.loss; }},
    {"lr", [](const Now& n) { return n.step.lr; }},
    {"model_tflops_per_gpu", [](const Now& n) { return n.step.tflops / n.ranks(); }},
};

std::span<const Naming> table_of(MetricNames names) {
  switch (names) {
    case MetricNames::kComposer: return kComposer;
    case MetricNames::kTorchtitan: return kTorchtitan;
    case MetricNames::kNanotron: return kNanotron;
    case MetricNames::kTycho: break;
  }
  return {};
}

/// Returns LLM Foundry's class for a kind of optimizer.
std::string optimizer_class(const std::string& kind) {
  constexpr std::pair<std::string_view, const char*> kClasses[] = {{"adamw", "AdamW"},
                                                                   {"decoupled_adamw", "DecoupledAdamW"},
                                                                   {"decoupled_lionw", "DecoupledLionW"},
                                                                   {"lion", "Lion"},
                                                                   {"sgd", "SGD"},
                                                                   {"muon", "Muon"}};
  for (const auto& [name, type] : kClasses)
    if (name == kind) return type;
  return kind;
}

NamedNumbers own_numbers(const StepMetrics& metrics) {
  NamedNumbers numbers;
  for_each_metric(metrics, [&](const auto& field, const auto& value) {
    if (std::string_view(field.name) == "step") return;
    if constexpr (requires { value.has_value(); }) {
      if (value) numbers.emplace_back(field.name, *value);
    } else {
      numbers.emplace_back(field.name, static_cast<double>(value));
    }
  });
  return numbers;
}

/// Returns {"val", "loss"} for "eval.val.loss"; the set is "" for all sets together. Returns empty strings
/// for other names.
std::pair<std::string, std::string> parts_of_evaluation(const std::string& name) {
  constexpr std::string_view kPrefix = "eval.";
  const size_t dot = name.rfind('.');
  if (!name.starts_with(kPrefix)) return {};
  const std::string measure = name.substr(dot + 1);
  if (measure != "loss" && measure != "perplexity") return {};
  return {dot < kPrefix.size() ? "" : name.substr(kPrefix.size(), dot - kPrefix.size()), measure};
}

}  // namespace

NamedNumbers named_numbers(const StepMetrics& metrics, const RunInfo& run, MetricNames names) {
  if (names == MetricNames::kTycho) return own_numbers(metrics);
  NamedNumbers numbers;
  for (const Naming& naming : table_of(names)) {
    const double value = naming.value({metrics, run});
    if (naming.optional && !std::isfinite(value)) continue;
    numbers.emplace_back(naming.name == kLrPrefix
                             ? std::string(kLrPrefix) + optimizer_class(run.optimizer) + "/group0"
                             : naming.name,
                         value);
  }
  return numbers;
}

NamedNumbers named_numbers(const std::string& name, double value, MetricNames names) {
  const auto [set, measure] = parts_of_evaluation(name);
  if (names == MetricNames::kComposer && !measure.empty())
    return {{"metrics/eval/" + (set.empty() ? "" : set + "/") +
                 (measure == "loss" ? "LanguageCrossEntropy" : "LanguagePerplexity"),
             value}};
  if (names == MetricNames::kTorchtitan && measure == "loss" && set.empty())
    return {{"validation_metrics/loss", value}};
  return {{name, value}};
}

}  // namespace tycho
