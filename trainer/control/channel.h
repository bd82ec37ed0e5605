// The control channel of a live run: operators' lines of Lua, through a socket in its folder or through
// files. Torch-free.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace tycho {

/// One line of an operator. Its answer goes back the way that it came.
struct OperatorLine {
  std::string code;
  bool may_command = false;
  std::string by;   // "ann (attach)"
  int client = -1;  // a connection, or -1 for a file
  std::string answer_file;
};

/// <run_dir>/control.sock, mode 0600, and <run_dir>/ctl/NNN.lua. Owned by one thread, which serves them when
/// it polls: the run needs no other thread. Only the user who runs the run, and root, are heard.
class ControlChannel {
 public:
  /// A socket that cannot be made (a file system without sockets) leaves the files; `warning` says so, or is
  /// "".
  explicit ControlChannel(const std::string& run_dir, std::string* warning = nullptr);
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  /// The lines that came since the last call; waits for the first one no longer than this.
  std::vector<OperatorLine> poll(int timeout_ms);
  void answer(const OperatorLine& line, bool ok, const std::string& text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether a process that is alive, or on another machine, owns the folder; one that is stopped is alive.
bool is_owned(const std::string& run_dir);

/// What came back of a line.
struct ControlAnswer {
  bool ok = false;
  std::string text;
};

/// The other end: a connection to a running run. Throws Error (kUnusable) when nothing answers there.
class ControlClient {
 public:
  explicit ControlClient(const std::string& run_dir);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;
  /// True when lines go through files: the run is on another machine.
  bool by_files() const;
  /// Sends a line and waits for its answer, at most a step of the run away. Throws Error (kUnusable) when the
  /// run ends first, or after `timeout_s`.
  ControlAnswer ask(const std::string& code, bool may_command, double timeout_s = 600);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
