// One trial as a process: `tycho run` with the trial's pins, in a group of its own.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tycho {

struct TrialCommand {
  std::vector<std::string> argv;  // argv[0] is the program
  std::string folder;             // where it runs
  std::string output;             // file that takes stdout and stderr, appended
  std::vector<std::pair<std::string, std::string>> environment;  // set beside what is there
};

/// Owned by the thread that started it. When that thread dies, however it dies, the process is told to save
/// and end (SIGTERM).
class TrialProcess {
 public:
  /// Throws Error (kFailure) when the process cannot be started.
  explicit TrialProcess(const TrialCommand& command);
  ~TrialProcess();
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// The exit code, 128 + signal for one that was killed; nothing while it runs.
  std::optional<int> poll();
  /// Asks it to save and end.
  void stop();

 private:
  pid_t pid_ = -1;
};

/// This program's own file.
std::string this_program();

}  // namespace tycho
