// What loggers write: the numbers of one moment of a run.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/metrics/named_table.h"

namespace tycho {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// Counts in bins of equal width from low to high.
struct NamedHistogram {
  std::string name;
  double low = 0, high = 0;
  std::vector<int64_t> counts;
};

struct NamedText {
  std::string name, text;
};

/// A checkpoint that is whole, in a folder or a store of objects.
struct StoredCheckpoint {
  int64_t step = 0;
  std::string place;  // a path, or an address such as s3://bucket/demo/checkpoints/step-.../
  int64_t num_bytes = 0;
};

struct MetricRecord {
  int64_t step = 0;
  double time_s = 0;  // since 1970
  NamedNumbers numbers;
  std::vector<NamedHistogram> histograms = {};
  std::vector<NamedText> texts = {};
  std::vector<NamedTable> tables = {};
  std::vector<NamedText> alerts = {};  // title and text
  std::vector<StoredCheckpoint> checkpoints = {};
};

}  // namespace tycho
