// Reads with poll, so that a limit and a stop signal end the wait; the terminal itself edits the line.
#include "host/standard_terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "host/signals.h"

namespace tycho {
namespace {

constexpr int kLook_ms = 200;      // between looks for a stop signal
constexpr size_t kViewLines = 10;  // that a live view may draw over

}  // namespace

std::string StandardTerminal::refusal() const {
  if (rank_ != 0) return "the prompt is on rank 0";
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return "there is no terminal";
  return "";
}

std::optional<std::string> StandardTerminal::read_line(const std::string& prompt, double limit_s) {
  write(prompt);
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(limit_s);
  for (size_t line_end; (line_end = read_.find('\n')) == std::string::npos;) {
    if (stop_was_requested() || Clock::now() > end) return std::nullopt;
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, kLook_ms) <= 0) continue;
    char bytes[4096];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count <= 0) return std::nullopt;
    read_.append(bytes, static_cast<size_t>(count));
  }
  const std::string line = read_.substr(0, read_.find('\n'));
  read_.erase(0, line.size() + 1);
  return line;
}

void StandardTerminal::write(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void StandardTerminal::close() {
  if (is_redrawn_) write(std::string(kViewLines, '\n'));
}

}  // namespace tycho
