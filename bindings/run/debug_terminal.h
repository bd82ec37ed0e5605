// The terminal of t.debug(): where a person types entries inside a call of a callback.
#pragma once
#include <optional>
#include <string>

namespace tycho {

/// Used by the trainer's thread.
class DebugTerminal {
 public:
  virtual ~DebugTerminal() = default;
  /// Returns why this rank cannot open a prompt; "" if it can.
  virtual std::string refusal() const = 0;
  /// Shows the prompt and reads a line without its end. Returns nullopt at the end of the input, when the run
  /// was asked to stop, or after `limit_s`.
  virtual std::optional<std::string> read_line(const std::string& prompt, double limit_s) = 0;
  virtual void write(const std::string& text) = 0;
  /// Called after the last line of a prompt.
  virtual void close() = 0;
};

}  // namespace tycho
