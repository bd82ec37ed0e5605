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
#include "trainer/metrics/named_table.h"

namespace tycho {

/// Cuts records into blocks of 32 KiB.
class WandbBlocks {
 public:
  /// Returns the first bytes of a file.
  std::string header();
  /// Returns a record as the next bytes of the file.
  std::string record(std::string_view bytes);

 private:
  std::string piece(std::string_view bytes, char type);
  size_t offset_ = 0;  // offset in the file
};

struct WandbRun {
  std::string id, project, entity, group, name, host;
  std::vector<std::string> tags;
  double start_s = 0;
  bool resumes = false;  // the run has an earlier file
  Json config = Json::object();
};

/// The numbers of a step, and its tables, each a file below files/.
struct WandbRow {
  MetricRecord numbers;
  std::vector<NamedText> tables = {};  // name, and JSON that tells the position of its file
};

/// The path below files/ and the text of a table's file, and the entry of a row that refers to it.
struct WandbTableFile {
  std::string path, text;
  NamedText in_row;
};
WandbTableFile wandb_table_file(const NamedTable& table, int64_t step);

// ---- messages; `number` counts the records of a file from 1 ----
std::string wandb_header_message(int64_t number);
std::string wandb_run_message(int64_t number, const WandbRun& run);
/// Returns a row of the history. `runtime_s` is the time since the run began.
std::string wandb_history_message(int64_t number, const WandbRow& row, double runtime_s);
/// Returns the newest numbers.
std::string wandb_summary_message(int64_t number, const WandbRow& row, double runtime_s);
/// Returns the message for a file below files/ that `wandb sync` uploads.
std::string wandb_file_message(int64_t number, const std::string& path);
std::string wandb_exit_message(int64_t number, int exit_code, double runtime_s);

/// Returns the highest step in the history of a file, -1 when there is none. Reads a file that a kill or a
/// fault cut short as far as its checksums are right.
int64_t last_wandb_step(std::string_view file);

}  // namespace tycho
