// Configuration of logging.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho {

struct LogConfig {
  Duration every = {1, DurationUnit::kBatch};
  bool plot = false;
  std::vector<std::string> show;

  template <class Visitor>
  void fields(Visitor& v) {
    v("every", every, "Print and record metrics whenever this much training is done.", units("ba tok sp dur"),
      positive);
    v("plot", plot, "Plot the loss when the run is done.");
    v("show", show,
      "Additional numbers on the display, by their names in metrics.jsonl: what callbacks record, "
      "eval.NAME.loss, tflops.");
  }
};

}  // namespace tycho
