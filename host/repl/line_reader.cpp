// Polls standard input, so that the thread can end although no line comes.
#include "host/repl/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tycho {
namespace {

constexpr int kLook_ms = 100;  // between looks whether the reader is to end

}  // namespace

LineReader::LineReader(std::function<bool(const std::string& line)> take)
    : take_(std::move(take)), thread_([this](const std::stop_token& over) { read(over); }) {}

void LineReader::read(const std::stop_token& over) {
  std::string rest;
  std::array<char, 4096> buffer;
  while (!over.stop_requested()) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, kLook_ms) <= 0) continue;
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) break;
    rest.append(buffer.data(), static_cast<size_t>(n));
    for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      add(rest.substr(0, end));
  }
  if (!rest.empty()) add(std::move(rest));
  const std::lock_guard lock(mutex_);
  at_end_ = true;
  changed_.notify_all();
}

void LineReader::add(std::string line) {
  if (take_(line)) return;
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
  changed_.notify_all();
}

std::optional<std::string> LineReader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return at_end_ || !lines_.empty(); });
  if (lines_.empty()) return std::nullopt;
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

}  // namespace tycho
