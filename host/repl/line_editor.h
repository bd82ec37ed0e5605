// A line of the terminal, edited with readline.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tycho {

/// What completion offers for a line up to the cursor: whole words for the last one, and a line that helps.
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

  enum class End { kLine, kInterrupted, kClosed };
  /// Shows the prompt and reads a line without its end. kInterrupted: Ctrl-C; kClosed: ^D on an empty line,
  /// or no terminal any more.
  End read(const std::string& prompt, std::string& line);
  /// An entry that ↑ brings back, as a whole.
  void remember(const std::string& entry);
};

}  // namespace tycho
