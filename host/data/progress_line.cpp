// Callers report a few times a second.
#include "host/data/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include "host/standard_streams.h"

namespace tycho {

ProgressLine::ProgressLine(FILE* out, std::chrono::duration<double> every)
    : out_(out), every_(every), is_terminal_(isatty(out == stderr ? STDERR_FILENO : fileno(out)) != 0) {}

void ProgressLine::show(const std::function<std::string()>& text) {
  if (is_terminal_) return draw_on(out_, "\r", fmt::format("{:<60} ", text()));
  const auto now = Clock::now();
  if (now - last_ < every_) return;
  last_ = now;
  fmt::print(out_, "{}\n", text());
  std::fflush(out_);
}

void ProgressLine::clear() {
  if (is_terminal_) draw_on(out_, fmt::format("\r{:80}\r", ""));
}

}  // namespace tycho
