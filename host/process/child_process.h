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

/// Its stdin, stdout and stderr are those of this process, unless `output` or `is_piped` says where stdout
/// and stderr go; stdin is empty then.
struct ChildCommand {
  std::vector<std::string> argv;                                 // argv[0] is the program
  std::string folder;                                            // where it runs; "" for here
  std::vector<std::pair<std::string, std::string>> environment;  // set beside what is there
  std::string output;           // file that takes stdout and stderr, appended
  bool is_piped = false;        // they come to ChildProcess::output()
  std::vector<int> inherited;   // descriptors that stay open in it
  bool own_group = false;       // Ctrl-C at the terminal does not reach it
  int orphan_signal = SIGTERM;  // what it gets when the thread that started it dies, however it dies
};

struct ChildEnd {
  int code = 0;    // 128 + signal for one that was killed
  int signal = 0;  // 0 for one that ended by itself
};

/// Owned by the thread that started it.
class ChildProcess {
 public:
  /// Throws Error (kFailure) when the process cannot be started, (kStorage) when `output` cannot be. A
  /// program that is not there ends with 127.
  explicit ChildProcess(const ChildCommand& command);
  /// Sends the orphan's signal to one that still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// The end of a pipe that does not block; -1 for one that is not piped, or after close_output().
  int output() const { return output_; }
  void close_output();
  /// Its end, once; nothing while it runs and afterwards.
  std::optional<ChildEnd> poll();
  bool is_running() const { return pid_ > 0; }
  /// Nothing happens to one that has ended.
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

/// Starts a process without a shell and reads it to its end. Nothing when that takes longer than `patience`
/// or prints more than `most` bytes: it is then killed. Throws as ChildProcess.
std::optional<ChildAnswer> ask_process(ChildCommand command, std::chrono::milliseconds patience, size_t most);

/// This program's own file.
std::string this_program();

}  // namespace tycho
