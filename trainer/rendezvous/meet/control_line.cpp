// Keeps bytes that cannot be sent yet, so that nothing blocks.
#include "trainer/rendezvous/meet/control_line.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tycho {
namespace {

constexpr int kMessagesAtOnce = 256;  // so that one line cannot keep the others waiting

}  // namespace

void ControlLine::say(ControlMessage what, std::string_view body) {
  if (!is_open()) return;
  out_ += frame_bytes(static_cast<uint8_t>(what), body);
  flush();
}

// read() detects that the other end is gone.
void ControlLine::flush() {
  while (has_unsent()) {
    const ssize_t n = send(fd(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return out_.clear();
    out_.erase(0, static_cast<size_t>(n));
  }
}

bool ControlLine::read(const std::function<void(ControlMessage what, const std::string& body)>& take) {
  std::array<char, 16 << 10> bytes;
  for (int i = 0; i < kMessagesAtOnce && is_open();) {
    const ssize_t n = recv(fd(), bytes.data(), std::min(bytes.size(), reader_.wanted()), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    try {
      const auto frame = reader_.add({bytes.data(), static_cast<size_t>(n)});
      if (!frame) continue;
      take(static_cast<ControlMessage>(frame->kind), frame->body);
      ++i;
    } catch (const Error&) {
      return false;
    }
  }
  return true;
}

}  // namespace tycho
