// An open connection between a rank and rank 0, which never blocks. Torch-free.
#pragma once
#include <functional>
#include <string>

#include "trainer/rendezvous/frames.h"
#include "trainer/rendezvous/meet/control_messages.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

/// Used by one thread.
class ControlLine {
 public:
  ControlLine() = default;
  /// Requires that `socket` is non-blocking.
  explicit ControlLine(Socket socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.fd(); }
  bool is_open() const { return socket_.is_open(); }
  void close() { socket_.close(); }

  /// Sends a message, or keeps it for flush(). Does nothing on a closed line.
  void say(ControlMessage what, std::string_view body = "");
  bool has_unsent() const { return is_open() && !out_.empty(); }
  void flush();
  /// Passes every complete message to `take`, which may close this line. Returns false when the other end is
  /// gone, or sends bytes that are no message.
  bool read(const std::function<void(ControlMessage what, const std::string& body)>& take);

 private:
  Socket socket_;
  FrameReader reader_{kMaxFrame};
  std::string out_;
};

}  // namespace tycho
