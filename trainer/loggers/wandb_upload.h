// Sends to a server of Weights & Biases what the files of a run have and the server lacks. The files are the
// queue: a row has the place in the server's history that its place in them gives, so sending it again, after
// an answer that was lost or by another process, changes nothing.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/loggers/wandb_artifact.h"
#include "trainer/loggers/wandb_blocks.h"
#include "trainer/loggers/wandb_entry.h"
#include "trainer/loggers/wandb_file.h"
#include "trainer/loggers/wandb_server.h"

namespace tycho {

/// Returns true if a server has all of an attempt, given by its file, and how it ended.
bool is_wholly_sent(const std::string& file);

/// Used by one thread, except cancel().
class WandbUpload {
 public:
  /// `files` are those of all attempts, in the order of their start; the last one may still grow.
  WandbUpload(WandbServer& server, std::string run_dir, std::vector<std::string> files);

  /// Sends all whole records of the files and lines of log.txt; opens the run at first. Throws Error like
  /// WandbServer; the next call continues.
  void send();
  /// Sends rows that are in no file, when their steps follow the last one.
  void send_rows(const std::vector<WandbStepEntry>& rows);
  /// Tells the server that the run still lives.
  void beat();
  /// Sends files and the exit code, if the last attempt has one. `last_line` is a line that log.txt gets only
  /// when this is done, "" for none.
  void end(const std::string& last_line = "");
  /// Returns true when a call before has reached the server.
  bool is_open() const { return remote_.has_value(); }
  /// Returns once why the server refused an alert or an artifact, which is then not sent; "" for none.
  std::string take_refusal() { return std::exchange(refusal_, ""); }
  int64_t num_sent_rows() const { return num_sent_rows_; }

 private:
  /// One request to the file stream, kept until the server has answered.
  struct Batch {
    std::vector<std::string> rows, events, lines;
    std::vector<std::string> uploaded;
    size_t num_bytes = 0;
    int64_t last_step = -1;
  };

  /// A file below files/, an alert or an artifact that the server may lack.
  struct Waiting {
    std::string name, folder;  // of the attempt
    std::variant<std::monostate, WandbAlertEntry, WandbArtifact> entry;
  };

  void open();
  bool fill();
  bool fill_from_files();
  bool fill_from_log();
  void find_console_place();
  void keep_console_place();
  void take(const WandbRun& run);
  void take(const WandbStepEntry& row);
  void take(const WandbSystemEntry& numbers);
  void take(const WandbFilesEntry& files);
  void take(const WandbAlertEntry& alert);
  void take(const WandbArtifact& artifact);
  void take(const WandbExitEntry& exit) { exit_code_ = exit.exit_code; }
  void take(const std::monostate&) {}
  void post();
  Json request() const;
  std::string summary_line() const;
  void wait_for_turn(Waiting waiting);
  void send_waiting();
  void send(const Waiting& waiting);
  void put(std::vector<std::pair<std::string, std::string>> contents);
  bool is_full() const;

  WandbServer& server_;
  const std::string run_dir_;
  std::deque<WandbBlockFile> files_;  // the first one is being read
  std::optional<WandbRun> run_;
  std::optional<WandbRemoteRun> remote_;        // and where the next lines go
  int64_t rows_to_skip_ = 0;                    // where the server does not tell its last step
  std::map<std::string, std::string> summary_;  // names and JSON
  double runtime_s_ = 0;
  std::optional<int> exit_code_;
  Batch batch_;
  const std::string console_file_;     // tells how much of log.txt the server has
  int64_t log_at_ = 0, log_line_ = 0;  // next byte and line of log.txt
  Hasher console_hash_;                // of the bytes before log_at_
  bool has_sent_lines_ = false;        // since console_file_ was written
  std::deque<Waiting> waiting_;
  int num_alerts_ = 0;                 // of this attempt
  double began_s_ = 0, before_s_ = 0;  // begin of this attempt, and the run's time by then
  std::string refusal_;
  int64_t num_sent_rows_ = 0;
};

}  // namespace tycho
