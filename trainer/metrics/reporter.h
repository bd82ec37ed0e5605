// The interface to which a run reports: its folder, sinks of numbers, the terminal. Torch-free.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/metrics/named_table.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// Called by the trainer's thread. Implementations never throw for a failure that only affects the display.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void run_start(const RunInfo&) {}
  /// Called for every step, for a live view; `record` is true for the steps of log.every.
  virtual void step(const StepMetrics&, bool /*record*/) {}
  /// Records a callback's number in metrics.jsonl.
  virtual void metric(int64_t /*step*/, const std::string& /*name*/, double /*value*/) {}
  /// Reports an event: kind "checkpoint", "eval", "resume", "stop", "warning", "error", ... with its facts.
  /// `text` is one line for display: "step 1000 saved, 1.5 GB in 2.1 s". The live view shows the last
  /// checkpoint, the last warning or error, and the last of all others.
  virtual void event(const std::string& /*kind*/, const std::string& /*text*/, const Json& /*facts*/) {}
  /// Records a table of this step, for loggers and for its own file in the run folder.
  virtual void table(int64_t /*step*/, const NamedTable&) {}
  /// Shows a warning that may repeat at many steps: on the screen only, not in files.
  virtual void screen_warning(const std::string& /*text*/) {}
  /// Called when the run has ended, before run_end: the last chance to write buffered data, and to fail while
  /// the other reporters can still report it.
  virtual void finish(const std::string& /*reason*/) {}
  /// The last call, also when the run stopped early. `reason` is for display: "done", "stopped by SIGTERM at
  /// step 120". `failure` is the exit code of the error that ended the run, if any.
  virtual void run_end(const std::string& /*reason*/, std::optional<ExitCode> /*failure*/) {}
};

/// Appends events.jsonl (one object a line, written at once) and log.txt in the run folder, which must exist.
/// Never changes records of an earlier process: a resumed run adds its own, and each has `attempt`, 1 for the
/// first process of the folder. Numbers go to sinks (loggers/sink.h). Throws Error (kStorage) when a file
/// cannot be opened or written.
std::unique_ptr<Reporter> make_file_reporter(const std::string& run_dir, FileOps& files = real_files());
/// Writes plain key=value lines to `fd`, for a pipe or a Slurm log. ASCII keys, no colour, one line per
/// record or event.
std::unique_ptr<Reporter> make_plain_reporter(int fd);
/// Draws the live view on a terminal, in place, at most 10 times a second and as wide as the terminal is.
/// Without colour when NO_COLOR is set, in ASCII when the locale is not UTF-8, and as plain lines when TERM
/// is dumb or unset.
std::unique_ptr<Reporter> make_terminal_reporter(int fd);
/// Returns true when the terminal named by TERM can redraw; the live view prints plain lines elsewhere.
bool can_redraw();
/// Combines several reporters, called in their order, with secrets masked in all texts. run_start passes
/// their exceptions on, since the run has not begun. Later, when a reporter throws, the others get one
/// warning until it works again, and the run continues.
std::unique_ptr<Reporter> make_tee(std::vector<std::unique_ptr<Reporter>> reporters);

}  // namespace tycho
