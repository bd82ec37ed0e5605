// metrics.jsonl in the run folder: one object a line, written at once and never changed.
#include <type_traits>

#include "trainer/base/text/json_number.h"
#include "trainer/loggers/sink.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

class JsonlSink final : public MetricSink {
 public:
  explicit JsonlSink(const SinkTarget& place)
      : attempt_(place.attempt), file_(place.files, place.run_dir + "/metrics.jsonl") {}

  void step(const StepMetrics& metrics) override {
    Json line = line_of(metrics.step);
    for_each_metric(metrics, [&](const auto& field, const auto& value) {
      if constexpr (requires { value.has_value(); }) {
        if (value)
          set_number(line, field.name, *value);
        else
          line[field.name] = nullptr;
      } else if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(value)>>) {
        set_number(line, field.name, value);
      } else {
        line[field.name] = value;
      }
    });
    file_.write(line.dump());
  }
  void metric(int64_t step, const std::string& name, double value) override {
    Json line = line_of(step);
    set_number(line, name, value);
    file_.write(line.dump());
  }

 private:
  Json line_of(int64_t step) const { return {{"step", step}, {"attempt", attempt_}, {"time", now_s()}}; }

  int64_t attempt_;
  LineFile file_;
};

}  // namespace

std::unique_ptr<MetricSink> make_sink(const JsonlSinkConfig&, const SinkTarget& place) {
  return std::make_unique<JsonlSink>(place);
}

}  // namespace tycho
