// Lays fields out on lines of at most 80 columns.
#include "trainer/metrics/plain_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/base/bytes.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

std::string safe_value(const std::string& text) { return quoted_value(printable(text, true)); }

/// Returns "1.50 GB" as "1.50GB", since a value has no spaces.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// Joins fields on as many lines as needed; each line begins with `head`.
std::string joined(const std::vector<std::string>& fields, const std::string& head = "") {
  std::string text, line = head;
  bool empty = true;
  for (const std::string& field : fields) {
    if (!empty && line.size() + 1 + field.size() > kPlainColumns) {
      text += line + "\n";
      line = head, empty = true;
    }
    line += (line.empty() ? "" : " ") + field;
    empty = false;
  }
  return text + line;
}

/// Returns "step=10    ", as wide as for the last step of the run.
std::string step_field(int64_t step, int64_t total_steps) {
  return fmt::format("step={:<{}}", step, std::to_string(total_steps).size());
}

std::string shown_number(double value, MetricText::As as) {
  switch (as) {
    case MetricText::As::kNumber: return metric_text(value);
    case MetricText::As::kShort: return short_text(value);
    case MetricText::As::kCount: return without_spaces(human_count(value));
    case MetricText::As::kPercent: return fmt::format("{:.1f}%", 100 * value);
    case MetricText::As::kClock: return without_spaces(clock_text(value));
  }
  return "";
}

}  // namespace

std::string banner_lines(const RunInfo& run) {
  std::vector<std::string> fields;
  const auto add = [&](const char* name, const std::string& value) {
    fields.push_back(fmt::format("{}={}", name, value));
  };
  add("run", safe_value(run.run_name));
  add("dir", safe_value(run.run_dir));
  add("device", safe_value(run.device));
  add("precision", safe_value(run.precision));
  add("ranks", std::to_string(run.num_ranks));
  add("recipe", safe_value(run.recipe_hash));
  if (!run.pins.empty()) add("pins", safe_value(fmt::format("{}", fmt::join(run.pins, " "))));
  add("params", std::to_string(run.num_params));
  add("steps", std::to_string(run.total_steps));
  add("tokens", std::to_string(run.total_tokens));
  if (run.first_step > 0) add("first_step", std::to_string(run.first_step));
  add("flops_per_token", fmt::format("{:.4g}", run.flops_per_token_full));
  add("flops_per_token_causal", fmt::format("{:.4g}", run.flops_per_token_causal));
  if (run.peak_flops) add("peak_tflops", fmt::format("{:.1f}", *run.peak_flops / 1e12));
  return joined(fields);
}

std::string step_line(const StepMetrics& metrics, int64_t total_steps) {
  std::string line = step_field(metrics.step, total_steps);
  for_each_metric(metrics, [&](const auto& field, const auto& value) {
    const MetricText& text = field.text;
    if (*text.label == '\0') return;
    if constexpr (requires { value.has_value(); }) {
      if (value) line += fmt::format(" {}={:<{}}", text.label, shown_number(*value, text.as), text.width);
    } else {
      line += fmt::format(" {}={:<{}}", text.label, shown_number(static_cast<double>(value), text.as),
                          text.width);
    }
  });
  return line;
}

std::string shown_lines(int64_t step, int64_t total_steps, const std::vector<ShownMetric>& shown) {
  std::vector<std::string> fields;
  for (const ShownMetric& one : shown)
    if (one.value)
      fields.push_back(fmt::format("{}={:<6}", printable(one.name, true), metric_text(*one.value)));
  if (fields.empty()) return "";
  std::string text = joined(fields, step_field(step, total_steps));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string event_line(const std::string& kind, const std::string& text) {
  return fmt::format("event={} text={}", safe_value(kind), safe_value(text));
}

std::string end_line(const std::string& reason) { return event_line("end", reason); }

}  // namespace tycho
