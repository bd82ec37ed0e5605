// The records of a run's file of Weights & Biases, as wandb_internal.proto of the package wandb 0.31
// describes them. wandb_blocks.h makes a file of them, which `wandb sync` uploads.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/loggers/metric_record.h"
#include "trainer/loggers/wandb_artifact.h"
#include "trainer/metrics/named_table.h"

namespace tycho {

struct WandbRun {
  std::string id, project, entity, group, name, host;
  std::vector<std::string> tags;
  double start_s = 0;
  bool resumes = false;  // the run has an earlier file
  Json config = json_object();
};

/// The numbers of a step, and what else its row has.
struct WandbRow {
  MetricRecord numbers;
  // Name and JSON: histograms, and where the files of tables are.
  std::vector<NamedText> others = {};
};

/// Returns a histogram as the entry of a row.
NamedText wandb_histogram(const NamedHistogram& histogram);

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
/// Returns the message for numbers of the machine: their names, without "system.", and JSON.
std::string wandb_machine_message(int64_t number, double time_s, const std::vector<NamedText>& items);
std::string wandb_alert_message(int64_t number, const NamedText& alert);
std::string wandb_artifact_message(int64_t number, const WandbRun& run, const WandbArtifact& artifact);
std::string wandb_exit_message(int64_t number, int exit_code, double runtime_s);

}  // namespace tycho
