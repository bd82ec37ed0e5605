// Reads lines of metrics.jsonl back into the numbers that they were written from.
#include "trainer/loggers/recorded_numbers.h"

#include <charconv>
#include <fstream>
#include <limits>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

#include "trainer/base/text/json_number.h"
#include "trainer/loggers/metric_names.h"

namespace tycho {
namespace {

/// Returns the step of a line. Lines begin with it, so that a file of a million lines need not be parsed for
/// the last few.
int64_t recorded_step(std::string_view line) {
  constexpr std::string_view kBegin = "{\"step\":";
  int64_t step = -1;
  if (line.starts_with(kBegin)) std::from_chars(line.data() + kBegin.size(), line.data() + line.size(), step);
  return step;
}

/// Returns a number, or NaN for a null, which stands alone for non-finite values in files of earlier
/// versions.
double number_or_nan(const Json& line, const std::string& name) {
  return number_in(line, name).value_or(std::numeric_limits<double>::quiet_NaN());
}

template <class T>
void read_metric(const Json& line, const char* name, T& member) {
  const auto found = line.find(name);
  if (found == line.end()) return;
  if constexpr (requires { member.has_value(); }) {
    member = number_in(line, name);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    if (found->is_number()) member = found->template get<int64_t>();
  } else {
    member = number_or_nan(line, name);
  }
}

/// Returns the numbers of a step, or the single one of an evaluation or a callback.
NamedNumbers numbers_of(const Json& line, const RunInfo& run, MetricNames names) {
  if (line.contains("tokens_per_s")) {
    StepMetrics metrics;
    std::apply([&](const auto&... field) { (read_metric(line, field.name, metrics.*field.member), ...); },
               StepMetrics::fields());
    return named_numbers(metrics, run, names);
  }
  NamedNumbers numbers;
  for (const auto& [name, value] : line.items())
    if (name != "step" && name != "attempt" && name != "time" && name != kNotFinite)
      for (auto& number : named_numbers(name, number_or_nan(line, name), names))
        numbers.push_back(std::move(number));
  return numbers;
}

}  // namespace

std::vector<MetricRecord> recorded_numbers(const std::string& run_dir, int64_t first, int64_t last,
                                           const RunInfo& run, MetricNames names) {
  std::map<std::pair<int64_t, std::string>, MetricRecord> newest;  // by step and name of the first number
  std::ifstream file(run_dir + "/metrics.jsonl");
  for (std::string text; std::getline(file, text);) {
    const int64_t step = recorded_step(text);
    if (step < first || step > last) continue;
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("time") || !line["time"].is_number()) continue;
    MetricRecord record = {step, line["time"].get<double>(), numbers_of(line, run, names)};
    if (!record.numbers.empty()) newest[{step, record.numbers[0].first}] = std::move(record);
    if (newest.size() > kMostRecorded) newest.erase(newest.begin());
  }
  std::vector<MetricRecord> records;
  for (auto& [key, record] : newest) records.push_back(std::move(record));
  return records;
}

}  // namespace tycho
