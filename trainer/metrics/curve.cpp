// Reads metrics.jsonl.
#include "trainer/metrics/curve.h"

#include <algorithm>
#include <map>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/text/json_number.h"

namespace tycho {

Curve read_curve(const std::string& metrics_path, const std::string& name) {
  const std::string text = read_file(metrics_path);
  std::map<double, double> by_step;
  double attempt = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const Json record = Json::parse(text.begin() + begin, text.begin() + end, nullptr, false);
    begin = end + 1;
    const auto is_number = [&](const char* key) { return record.contains(key) && record[key].is_number(); };
    const std::optional<double> value = record.is_object() ? number_in(record, name) : std::nullopt;
    if (!value || !is_number("step")) continue;
    const auto step = record["step"].get<double>();
    if (is_number("attempt") && record["attempt"].get<double>() > attempt) {
      attempt = record["attempt"].get<double>();
      by_step.erase(by_step.lower_bound(step), by_step.end());
    }
    by_step[step] = *value;
  }
  if (by_step.empty()) {
    fail(ExitCode::kUnusable, "[plot] expected records with \"{}\" in {}, found none; does the run log it?",
         name, metrics_path);
  }
  Curve curve;
  for (const auto& [step, value] : by_step) {
    curve.x.push_back(step);
    curve.y.push_back(value);
  }
  return curve;
}

}  // namespace tycho
