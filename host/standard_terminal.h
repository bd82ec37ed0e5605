// The terminal on standard input and output, for t.debug().
#pragma once
#include <optional>
#include <string>

#include "bindings/run/debug_terminal.h"

namespace tycho {

class StandardTerminal final : public DebugTerminal {
 public:
  /// `is_redrawn`: a live view draws over the last lines of the screen.
  StandardTerminal(int rank, bool is_redrawn) : rank_(rank), is_redrawn_(is_redrawn) {}
  std::string refusal() const override;
  std::optional<std::string> read_line(const std::string& prompt, double limit_s) override;
  void write(const std::string& text) override;
  void close() override;

 private:
  int rank_;
  bool is_redrawn_;
  std::string read_;  // bytes after the last line
};

}  // namespace tycho
