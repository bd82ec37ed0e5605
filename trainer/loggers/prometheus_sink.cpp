// The newest numbers in Prometheus' text format: in a file for node_exporter's textfile collector, and on a
// port. https://prometheus.io/docs/instrumenting/exposition_formats
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "trainer/loggers/background_sink.h"
#include "trainer/loggers/metrics_endpoint.h"
#include "trainer/loggers/sink.h"
#include "trainer/metrics/line_file.h"
#include "trainer/recipe/run_name.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string label(std::string_view name, std::string_view value) {
  std::string text = std::string(name) + "=\"";
  for (const char c : value) {
    if (c == '\n')
      text += "\\n";
    else if (c == '"' || c == '\\')
      text += std::string("\\") + c;
    else
      text += c;
  }
  return text + "\"";
}

/// Returns the help of a number of a step; null for other names.
const char* help_of(std::string_view name) {
  const char* help = nullptr;
  for_each_metric(StepMetrics(), [&](const auto& field, const auto&) {
    if (name == field.name) help = field.help;
  });
  return help;
}

/// Returns a family and the labels of a series in it. Names of callbacks become a label: a name may have any
/// bytes, and different names must stay different.
std::pair<std::string, std::string> series_of(const std::string& name) {
  if (help_of(name) != nullptr) return {name, ""};
  for (const std::string measure : {"loss", "perplexity", "bits_per_byte"}) {
    if (name == "eval." + measure) return {"eval_" + measure, ""};
    if (name.starts_with("eval.") && name.ends_with("." + measure))
      return {"eval_" + measure, label("set", name.substr(5, name.size() - 6 - measure.size()))};
  }
  return {"metric", label("name", name)};
}

std::string family_help(const std::string& family) {
  if (const char* help = help_of(family)) return help;
  if (family == "eval_loss") return "Loss on held-out data; without a label, over all sets.";
  if (family == "eval_perplexity") return "Perplexity on held-out data; without a label, over all sets.";
  if (family == "eval_bits_per_byte")
    return "Cross-entropy of held-out text per byte of it, in bits; without a label, over all sets.";
  if (family == "running") return "1 during the run, 0 after its end.";
  if (family == "last_record_seconds") return "When the run wrote its newest number, in seconds since 1970.";
  return "Numbers that callbacks recorded.";
}

class PrometheusWriter final : public RecordWriter {
 public:
  PrometheusWriter(const PrometheusSinkConfig& config, const SinkTarget& place)
      : config_(config), place_(place) {}

  void start(const RunInfo& run) override {
    run_label_ = label("run", run.run_name);
    path_ = with_run_name(config_.file, run.run_name);
    if (const fs::path parent = fs::path(path_).parent_path(); !parent.empty())
      make_dirs(place_.files, parent.string());
    if (config_.port > 0)
      endpoint_ = std::make_unique<MetricsEndpoint>(config_.host, static_cast<int>(config_.port));
    families_["running"][""] = 1;
    publish();
  }

  void resume(int64_t) override {}

  void write(const std::vector<MetricRecord>& records) override {
    for (const MetricRecord& record : records) {
      families_["step"][""] = static_cast<double>(record.step);
      families_["last_record_seconds"][""] = record.time_s;
      for (const auto& [name, value] : record.numbers) {
        const auto [family, labels] = series_of(name);
        families_[family][labels] = value;
      }
    }
    publish();
  }

  void end(const std::string&) override {
    families_["running"][""] = 0;
    publish();
  }

  // Prometheus looks every few seconds.
  double pause_s() const override { return 1; }

 private:
  void publish() {
    std::string text;
    for (const auto& [family, series] : families_) {
      text += fmt::format("# HELP tycho_{} {}\n# TYPE tycho_{} gauge\n", family, family_help(family), family);
      for (const auto& [labels, value] : series)
        text += fmt::format("tycho_{}{{{}{}{}}} {}\n", family, run_label_, labels.empty() ? "" : ",", labels,
                            number(value));
    }
    if (!path_.empty()) write_file_atomically(place_.files, path_, text);
    if (endpoint_) endpoint_->set_text(std::move(text));
  }

  const PrometheusSinkConfig config_;
  const SinkTarget place_;
  std::string path_, run_label_;
  std::map<std::string, std::map<std::string, double>> families_;  // family -> labels -> newest value
  std::unique_ptr<MetricsEndpoint> endpoint_;                      // null without a port
};

}  // namespace

std::unique_ptr<MetricSink> make_sink(const PrometheusSinkConfig& config, const SinkTarget& place) {
  return make_background_sink("t.log.prometheus", MetricNames::kTycho,
                              std::make_unique<PrometheusWriter>(config, place));
}

}  // namespace tycho
