// A descriptor that is passed on stays open across exec; once taken it does not, and this flag tells the two
// apart.
#include "trainer/rendezvous/handed_listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "trainer/rendezvous/endpoint.h"

namespace tycho {

int hand_over(Socket listener) {
  fcntl(listener.fd(), F_SETFD, 0);
  return listener.release();
}

Socket take_listener(const RankInfo& place) {
  const int fd = place.listener;
  const int flags = fd < 0 ? -1 : fcntl(fd, F_GETFD);
  if (flags < 0 || (flags & FD_CLOEXEC) != 0) return {};
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0) return {};
  if (local_end(fd).port() != place.port) return {};
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return Socket(fd);
}

}  // namespace tycho
