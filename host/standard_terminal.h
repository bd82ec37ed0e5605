// The terminal on standard input and output, for t.debug().
#pragma once
#include <optional>
#include <string>

#include "bindings/run/debug_terminal.h"

namespace tycho {

class StandardTerminal final : public DebugTerminal {
 public:
  explicit StandardTerminal(int rank) : rank_(rank) {}
  std::string refusal() const override;
  std::optional<std::string> read_line(const std::string& prompt, double limit_s) override;
  void write(const std::string& text) override;

 private:
  int rank_;
  std::string read_;  // bytes after the last line
};

}  // namespace tycho
