// Where metrics and events go: metrics.jsonl, events.jsonl, the log, the terminal. Torch-free.
#pragma once
#include <memory>
#include <string>

#include "trainer/base/json.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// Called by the trainer's thread. Implementations never throw for what is only display.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void run_start(const RunInfo&) {}
  /// Every step, for a live view; `record` when log.every says so.
  virtual void step(const StepMetrics&, bool record) {}
  /// Something that happened: kind "checkpoint", "resume", "stop", "warning", ... with its facts. `text` is one line for
  /// people.
  virtual void event(const std::string& kind, const std::string& text, const Json& facts) {}
  virtual void run_end(const std::string& reason) {}
};

/// Appends metrics.jsonl and events.jsonl (one object a line, flushed each) and log.txt in the run folder.
std::unique_ptr<Reporter> make_file_reporter(const std::string& run_dir);
/// Plain key=value lines on `fd`: what a pipe or a Slurm log gets.
std::unique_ptr<Reporter> make_plain_reporter(int fd);
/// The live view (reference/lua_host.md §5.2) on a terminal: redrawn in place at most 10 times a second, without colour
/// when NO_COLOR is set.
std::unique_ptr<Reporter> make_terminal_reporter(int fd);
/// Several as one.
std::unique_ptr<Reporter> make_tee(std::vector<std::unique_ptr<Reporter>> reporters);

}  // namespace tycho
