// Addresses of sockets in run folders. Torch-free.
#pragma once
#include <sys/un.h>

#include <string>

namespace tycho {

/// The address of <run_dir>/control.sock. Addresses hold 107 bytes and paths of runs may be longer, so the
/// folder is named by a descriptor, which is open while this object lives.
class SocketAddress {
 public:
  /// Throws Error (kUnusable) when the folder cannot be opened.
  explicit SocketAddress(const std::string& run_dir);
  ~SocketAddress();
  SocketAddress(const SocketAddress&) = delete;
  SocketAddress& operator=(const SocketAddress&) = delete;
  const sockaddr_un& address() const { return address_; }
  const char* path() const { return address_.sun_path; }

 private:
  int folder_;
  sockaddr_un address_ = {};
};

}  // namespace tycho
