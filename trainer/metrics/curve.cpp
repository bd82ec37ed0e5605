// Reads metrics.jsonl.
#include "trainer/metrics/curve.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/text/json_number.h"

namespace tycho {

void GatheredCurve::add(double step, double value, double attempt) {
  auto& [x, y] = curve_;
  const auto at = std::lower_bound(x.begin(), x.end(), step) - x.begin();
  if (attempt > attempt_) {
    attempt_ = attempt;
    x.resize(static_cast<size_t>(at)), y.resize(static_cast<size_t>(at));
  }
  if (at < std::ssize(x) && x[static_cast<size_t>(at)] == step) {
    y[static_cast<size_t>(at)] = value;
    return;
  }
  x.insert(x.begin() + at, step), y.insert(y.begin() + at, value);
}

CurveFile::CurveFile(std::string metrics_path, std::vector<std::string> names)
    : path_(std::move(metrics_path)), names_(std::move(names)), file_(path_), curves_(names_.size()) {}

std::vector<Curve> CurveFile::read() {
  if (!std::filesystem::exists(path_)) fail(ExitCode::kUnusable, "[plot] cannot read {}", path_);
  if (file_.was_replaced()) {
    file_.rewind();
    curves_.assign(names_.size(), {});
  }
  file_.read([&](const Json& record) {
    const std::optional<double> step = number_in(record, "step");
    for (size_t i = 0; step && i < names_.size(); ++i)
      if (const std::optional<double> value = number_in(record, names_[i]))
        curves_[i].add(*step, *value, number_in(record, "attempt").value_or(0));
  });
  std::vector<Curve> curves;
  for (size_t i = 0; i < names_.size(); ++i) {
    curves.push_back(curves_[i].curve());
    if (curves[i].x.empty())
      fail(ExitCode::kUnusable, "[plot] expected records with \"{}\" in {}, found none; does the run log it?",
           names_[i], path_);
  }
  return curves;
}

Curve read_curve(const std::string& metrics_path, const std::string& name) {
  return CurveFile(metrics_path, {name}).read()[0];
}

}  // namespace tycho
