// The control channel of a live run: operators' lines of Lua, through a socket in its folder or through
// files. Torch-free.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace tycho {

/// One line of an operator. Its answer is returned through the same connection or file.
struct OperatorLine {
  std::string code;
  bool may_command = false;
  std::string by;   // "ann (attach)"
  int client = -1;  // a connection, or -1 for a file
  std::string answer_file;
};

/// Serves <run_dir>/control.sock, mode 0600, and <run_dir>/ctl/NNN.lua. Owned by one thread, which serves
/// them when it polls: the run needs no other thread. Accepts lines only from the user who runs the run, and
/// root.
class ControlChannel {
 public:
  /// Falls back to files when a socket cannot be made (a file system without sockets), and sets `warning`;
  /// otherwise sets it to "".
  explicit ControlChannel(const std::string& run_dir, std::string* warning = nullptr);
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  /// Returns the lines that arrived since the last call. Waits at most `timeout_ms` for the first one.
  std::vector<OperatorLine> poll(int timeout_ms);
  void answer(const OperatorLine& line, bool ok, const std::string& text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns true when a live process, or one on another machine, owns the folder. A stopped process is alive.
bool is_owned(const std::string& run_dir);

/// The answer to a line.
struct ControlAnswer {
  bool ok = false;
  std::string text;
};

/// The client's end of a connection to a live run. Throws Error (kUnusable) when nothing answers there.
class ControlClient {
 public:
  explicit ControlClient(const std::string& run_dir);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;
  /// Returns true when lines go through files: the run is on another machine.
  bool by_files() const;
  /// Sends a line and waits for its answer, which takes at most a step of the run. Throws Error (kUnusable)
  /// when the run ends first, or after `timeout_s`.
  ControlAnswer ask(const std::string& code, bool may_command, double timeout_s = 600);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
