// Picks numbers by their names.
#include "trainer/metrics/shown_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace tycho {

ShownMetrics::ShownMetrics(const std::vector<std::string>& names) {
  for (const std::string& name : names) metrics_.push_back({name, std::nullopt});
}

void ShownMetrics::step(const StepMetrics& m) {
  const std::pair<const char*, std::optional<double>> numbers[] = {
      {"loss", m.loss},
      {"lr", m.lr},
      {"grad_norm", m.grad_norm},
      {"tokens", static_cast<double>(m.tokens)},
      {"samples", static_cast<double>(m.samples)},
      {"epoch", static_cast<double>(m.epoch)},
      {"step_s", m.step_s},
      {"data_wait_s", m.data_wait_s},
      {"tokens_per_s", m.tokens_per_s},
      {"tflops", m.tflops},
      {"tflops_causal", m.tflops_causal},
      {"mfu", m.mfu},
      {"mfu_causal", m.mfu_causal},
      {"memory_bytes", static_cast<double>(m.memory_bytes)},
      {"eta_s", m.eta_s},
  };
  for (const auto& [name, value] : numbers)
    if (value) record(name, *value);
}

void ShownMetrics::record(const std::string& name, double value) {
  for (ShownMetric& metric : metrics_) {
    if (metric.name != name) continue;
    metric.value = value;
    news_ = true;
  }
}

void ShownMetrics::event(const std::string& kind, const Json& facts) {
  if (kind != "eval" || !facts.contains("loss")) return;
  const double loss = facts.at("loss").get<double>();
  if (facts.value("total", false)) record("eval.loss", loss);
  if (facts.contains("name")) record("eval." + facts.at("name").get<std::string>() + ".loss", loss);
}

bool ShownMetrics::take_news() { return std::exchange(news_, false); }

std::string ShownMetrics::missing_text() const {
  std::vector<std::string> missing;
  for (const ShownMetric& metric : metrics_)
    if (!metric.value) missing.push_back(metric.name);
  if (missing.empty()) return "";
  return fmt::format("log.show names {}, but nothing recorded {}: see metrics.jsonl for the names",
                     fmt::join(missing, ", "), missing.size() == 1 ? "it" : "them");
}

}  // namespace tycho
