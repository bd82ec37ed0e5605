// The records of a run's file of Weights & Biases (wandb_file.h), read back.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/loggers/metric_record.h"
#include "trainer/loggers/wandb_artifact.h"
#include "trainer/loggers/wandb_file.h"

namespace tycho {

/// A row of the history: names and JSON, as wandb writes them.
struct WandbStepEntry {
  int64_t step = 0;
  std::vector<NamedText> items = {};
  double runtime_s() const;
};

/// Numbers of the machine at a time.
struct WandbSystemEntry {
  double time_s = 0;
  std::vector<NamedText> items = {};
};

/// Paths below files/.
struct WandbFilesEntry {
  std::vector<std::string> paths;
};

struct WandbAlertEntry {
  std::string title, text, level;
};

struct WandbExitEntry {
  int exit_code = 0;
};

/// std::monostate: a record that a server need not know.
using WandbEntry = std::variant<std::monostate, WandbRun, WandbStepEntry, WandbSystemEntry, WandbFilesEntry,
                                WandbAlertEntry, WandbArtifact, WandbExitEntry>;

/// Reads a record. A damaged one gives std::monostate.
WandbEntry read_wandb_entry(std::string_view record);

/// Facts of the files of a run, as far as earlier attempts wrote them.
struct WandbEnd {
  int64_t step = -1;                // the highest one; -1: none
  double runtime_s = 0;             // the run's time then
  bool has_exit = false;            // the last file says how its attempt ended
  std::set<std::string> artifacts;  // digests
};
/// Reads files, each as far as its checksums are right: a kill or a fault may have cut it short.
WandbEnd end_of_wandb_files(const std::vector<std::string>& paths);

/// Returns the files of the run `id` in the folder of all attempts, in the order of their start.
std::vector<std::string> wandb_files(const std::string& dir, const std::string& id);

}  // namespace tycho
