// The file of an offline run of Weights & Biases, which `wandb sync` uploads: messages in the blocks of
// LevelDB's log format. Written as wandb_internal.proto of the package wandb 0.31 describes it.
// https://github.com/google/leveldb/blob/main/doc/log_format.md, with plain CRC-32 of type and data.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/loggers/metric_record.h"

namespace tycho {

/// Cuts records into blocks of 32 KiB.
class WandbBlocks {
 public:
  /// The first bytes of a file.
  std::string header();
  /// A record as the next bytes of the file.
  std::string record(std::string_view bytes);

 private:
  std::string piece(std::string_view bytes, char type);
  size_t offset_ = 0;  // in the file
};

struct WandbRun {
  std::string id, project, entity, group, name, host;
  std::vector<std::string> tags;
  double start_s = 0;
  bool resumes = false;  // the run has an earlier file
  Json config = Json::object();
};

// ---- messages; `number` counts the records of a file from 1 ----
std::string wandb_header_message(int64_t number);
std::string wandb_run_message(int64_t number, const WandbRun& run);
/// A row of the history. `runtime_s` is the time since the run began.
std::string wandb_history_message(int64_t number, const MetricRecord& row, double runtime_s);
/// The newest numbers.
std::string wandb_summary_message(int64_t number, const MetricRecord& row, double runtime_s);
std::string wandb_exit_message(int64_t number, int exit_code, double runtime_s);

/// The highest step in the history of a file, -1 without one. A file that a kill or a fault cut short is read
/// as far as its checksums hold.
int64_t last_wandb_step(std::string_view file);

}  // namespace tycho
