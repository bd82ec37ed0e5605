// What loggers write: the numbers of one moment of a run.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tycho {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

struct MetricRecord {
  int64_t step = 0;
  double time_s = 0;  // since 1970
  NamedNumbers numbers;
};

}  // namespace tycho
