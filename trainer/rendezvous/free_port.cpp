// Lets the system choose a port and releases it.
#include "trainer/rendezvous/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"

namespace tycho {

int free_port() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t num_bytes = sizeof address;
  const bool bound = socket_fd >= 0 &&
                     bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), num_bytes) == 0 &&
                     getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &num_bytes) == 0;
  const int error = errno;
  if (socket_fd >= 0) close(socket_fd);
  if (!bound)
    fail(ExitCode::kTopology, "[ranks] no free port on 127.0.0.1 for the rendezvous: {}",
         std::strerror(error));
  return ntohs(address.sin_port);
}

}  // namespace tycho
