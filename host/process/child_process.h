// A child process: started, monitored, ended.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// A command to start. It inherits stdin, stdout and stderr, unless `output` or `is_piped` redirects stdout
/// and stderr; stdin is then empty.
struct ChildCommand {
  std::vector<std::string> argv;                                 // argv[0] is the program
  std::string folder;                                            // working directory; "" for this process's
  std::vector<std::pair<std::string, std::string>> environment;  // added to the inherited variables
  std::string output;           // file to which stdout and stderr are appended
  bool is_piped = false;        // stdout and stderr are read from ChildProcess::output()
  std::vector<int> inherited;   // descriptors that stay open in the child
  bool own_group = false;       // Ctrl-C at the terminal does not reach it
  int orphan_signal = SIGTERM;  // sent to the child when the thread that started it dies for any reason
};

struct ChildEnd {
  int code = 0;    // 128 + signal for a killed process
  int signal = 0;  // 0 for a process that ended by itself
};

/// Owned by the thread that started it.
class ChildProcess {
 public:
  /// Throws Error (kFailure) when the process cannot be started, (kStorage) when `output` cannot be opened. A
  /// missing program ends with 127.
  explicit ChildProcess(const ChildCommand& command);
  /// Sends orphan_signal to a process that still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Returns the non-blocking end of a pipe; -1 when the output is not piped, or after close_output().
  int output() const { return output_; }
  void close_output();
  /// Returns the end of the process once; nullopt while it runs and afterwards.
  std::optional<ChildEnd> poll();
  bool is_running() const { return pid_ > 0; }
  /// Sends a signal. Does nothing when the process has ended.
  void send(int signal);

 private:
  pid_t pid_ = -1;
  int output_ = -1, orphan_signal_;
};

/// How a process ended and all that it printed.
struct ChildAnswer {
  ChildEnd end;
  std::string output;  // stdout and stderr together
};

/// Starts a process without a shell and reads its whole output. Returns nullopt, and kills it, when it takes
/// longer than `patience` or prints more than `most` bytes. Throws like ChildProcess.
std::optional<ChildAnswer> ask_process(ChildCommand command, std::chrono::milliseconds patience, size_t most);

/// Returns the path of this program's file.
std::string this_program();

}  // namespace tycho
