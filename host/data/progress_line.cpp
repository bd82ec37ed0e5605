// Callers report a few times a second.
#include "host/data/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

namespace tycho {

ProgressLine::ProgressLine(FILE* out, std::chrono::duration<double> every)
    : out_(out), every_(every), is_terminal_(isatty(fileno(out)) != 0) {}

void ProgressLine::show(const std::function<std::string()>& text) {
  if (is_terminal_) return fmt::print(out_, "\r{:<60} ", text());
  const auto now = Clock::now();
  if (now - last_ < every_) return;
  last_ = now;
  fmt::print(out_, "{}\n", text());
  std::fflush(out_);
}

void ProgressLine::clear() {
  if (is_terminal_) fmt::print(out_, "\r{:80}\r", "");
}

}  // namespace tycho
