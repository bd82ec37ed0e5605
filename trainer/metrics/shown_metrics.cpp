// Picks numbers by their names.
#include "trainer/metrics/shown_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "trainer/base/text/json_number.h"

namespace tycho {

ShownMetrics::ShownMetrics(const std::vector<std::string>& names) {
  for (const std::string& name : names) metrics_.push_back({name, std::nullopt});
}

void ShownMetrics::step(const StepMetrics& m) {
  for_each_metric(m, [&](const auto& field, const auto& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) record(field.name, *value);
    } else {
      record(field.name, static_cast<double>(value));
    }
  });
}

void ShownMetrics::record(const std::string& name, double value) {
  for (ShownMetric& metric : metrics_) {
    if (metric.name != name) continue;
    metric.value = value;
    changed_ = true;
  }
}

void ShownMetrics::event(const std::string& kind, const Json& facts) {
  if (kind != "eval") return;
  const std::optional<double> loss = number_in(facts, "loss");
  if (!loss) return;
  if (facts.value("total", false)) record("eval.loss", *loss);
  if (facts.contains("name")) record("eval." + facts.at("name").get<std::string>() + ".loss", *loss);
}

bool ShownMetrics::take_changed() { return std::exchange(changed_, false); }

std::string ShownMetrics::missing_text() const {
  std::vector<std::string> missing;
  for (const ShownMetric& metric : metrics_)
    if (!metric.value) missing.push_back(metric.name);
  if (missing.empty()) return "";
  return fmt::format("log.show names {}, but nothing recorded {}: see metrics.jsonl for the names",
                     fmt::join(missing, ", "), missing.size() == 1 ? "it" : "them");
}

}  // namespace tycho
