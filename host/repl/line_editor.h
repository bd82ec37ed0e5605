// A line of the terminal, edited with readline where the system has it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "host/repl/plain_line.h"

namespace tycho {

/// Completions of a line up to the cursor: replacements for the last word, and a hint.
struct Completions {
  std::vector<std::string> words;
  std::string hint;
};
using Completer = std::function<Completions(const std::string& line)>;

/// Owns the terminal of this process while it reads. One at a time.
class LineEditor {
 public:
  explicit LineEditor(Completer completer);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  using End = LineEnd;
  /// Shows the prompt and reads a line without its end. Returns kInterrupted for Ctrl-C; kClosed for ^D on an
  /// empty line, or when the terminal is gone.
  End read(const std::string& prompt, std::string& line);
  /// Adds an entry that ↑ recalls as a whole.
  void remember(const std::string& entry);

 private:
  End read_plain(const std::string& prompt, std::string& line);
};

}  // namespace tycho
