// Looks at the state twice a second.
#include "host/watch_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "host/signals.h"
#include "trainer/metrics/line_file.h"

namespace tycho {

std::string page_stamp() { return fmt::format("{:.0f}", now_s() * 1e6); }

int watch_page(const std::string& path, const std::function<std::string()>& state,
               const std::function<void(bool watched)>& write) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{500};
  const StopFlag& stop = stop_on_signals();
  std::string written;
  Clock::time_point next = Clock::now();
  bool is_first = true;
  while (stop == 0) {
    if (const std::string now = state(); Clock::now() >= next && (is_first || now != written)) {
      const Clock::time_point began = Clock::now();
      write(true);
      written = now;
      next = Clock::now() + 10 * (Clock::now() - began);
      if (is_first) {
        fmt::print("{} follows its runs until Ctrl-C; open it in a browser\n", path);
        std::fflush(stdout);
      }
      is_first = false;
    }
    std::this_thread::sleep_for(kPause);
  }
  write(false);
  return 128 + stop;
}

}  // namespace tycho
