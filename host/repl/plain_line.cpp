// Polls, so that Ctrl-C is seen although no line comes.
#include "host/repl/plain_line.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tycho {

LineEnd read_plain_line(int fd, std::string& buffered, const std::function<bool()>& take_interrupt,
                        std::string& line) {
  std::array<char, 4096> buffer;
  for (;;) {
    if (take_interrupt()) {
      buffered.clear();
      return LineEnd::kInterrupted;
    }
    if (const size_t end = buffered.find('\n'); end != std::string::npos) {
      line = buffered.substr(0, end);
      buffered.erase(0, end + 1);
      return LineEnd::kLine;
    }
    pollfd input = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&input, 1, -1);
    const ssize_t n = ready < 0 ? -1 : ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) {
      line = std::exchange(buffered, "");
      return line.empty() ? LineEnd::kClosed : LineEnd::kLine;
    }
    buffered.append(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace tycho
