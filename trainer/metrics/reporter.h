// Where a run reports what happens: its folder, sinks of numbers, the terminal. Torch-free.
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

/// Called by the trainer's thread. Implementations never throw for what is only display.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void run_start(const RunInfo&) {}
  /// Every step, for a live view; `record` when log.every says so.
  virtual void step(const StepMetrics&, bool /*record*/) {}
  /// A number that a callback recorded, for metrics.jsonl.
  virtual void metric(int64_t /*step*/, const std::string& /*name*/, double /*value*/) {}
  /// Something that happened: kind "checkpoint", "eval", "resume", "stop", "warning", "error", ... with its
  /// facts. `text` is one line for people: "step 1000 saved, 1.5 GB in 2.1 s". The live view keeps the last
  /// of checkpoint, of warning or error, and of all others.
  virtual void event(const std::string& /*kind*/, const std::string& /*text*/, const Json& /*facts*/) {}
  /// A table of this step, for loggers and for its own file in the run folder.
  virtual void table(int64_t /*step*/, const NamedTable&) {}
  /// A warning that holds at this step and may hold at many: for the screen alone, not for files.
  virtual void screen_warning(const std::string& /*text*/) {}
  /// The run has ended, and run_end follows: the last moment to write what is buffered, and to fail so that
  /// the others still hear of it.
  virtual void finish(const std::string& /*reason*/) {}
  /// The last call, also when the run stopped early. `reason` is for people: "done", "stopped by SIGTERM at
  /// step 120". `failure`: the error's exit code, when one ended it.
  virtual void run_end(const std::string& /*reason*/, std::optional<ExitCode> /*failure*/) {}
};

/// Appends events.jsonl (one object a line, written at once) and log.txt in the run folder, which must exist.
/// Nothing that an earlier process wrote is changed: a resumed run adds records, and each carries `attempt`,
/// 1 for the first process of the folder. Numbers go to sinks (loggers/sink.h). Throws Error (kStorage) when
/// a file cannot be opened or written.
std::unique_ptr<Reporter> make_file_reporter(const std::string& run_dir, FileOps& files = real_files());
/// Plain key=value lines on `fd`: what a pipe or a Slurm log gets. ASCII keys, no colour, one line per record
/// or event.
std::unique_ptr<Reporter> make_plain_reporter(int fd);
/// The live view on a terminal: redrawn in place at most 10 times a second, as wide as the terminal is now.
/// Without colour when NO_COLOR is set, in ASCII when the locale is not UTF-8, and plain lines when TERM is
/// dumb or unset.
std::unique_ptr<Reporter> make_terminal_reporter(int fd);
/// Whether the terminal that TERM names can be drawn over: the live view is plain lines elsewhere.
bool can_redraw();
/// Several as one, in their order, with secrets masked in all texts. run_start passes on what they throw: the
/// run has not begun. After that a reporter that throws is named to the others as a warning, once until it
/// works again, and the run goes on.
std::unique_ptr<Reporter> make_tee(std::vector<std::unique_ptr<Reporter>> reporters);

}  // namespace tycho
