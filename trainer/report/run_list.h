// The runs below a folder, a line each: what they reached and whether they go on. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

struct RunLine {
  std::string folder, name;
  std::string
      state;  // "running", why it ended, or "killed": no process runs in the folder, and it has no end
  int64_t step = 0, total_steps = 0;  // 0 when its records do not tell
  std::optional<double> loss;         // of the newest step
  double newest_s = 0;                // time of the newest record, in seconds since 1970
};

/// Returns the runs in `folder`, which may be one itself, and in its subfolders down to the third level,
/// newest record first. Reads only the ends of their records, so that it takes milliseconds per run. Throws
/// Error (kUnusable) when the folder cannot be read.
std::vector<RunLine> list_runs(const std::string& folder);

/// Returns the rows of a table, header first.
std::vector<std::vector<std::string>> run_list_table(const std::vector<RunLine>& runs);
Json run_list_json(const std::vector<RunLine>& runs);

}  // namespace tycho
