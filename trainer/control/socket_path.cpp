// Names the folder through /proc, because socket addresses hold only 107 bytes.
#include "trainer/control/socket_path.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"

namespace tycho {

SocketAddress::SocketAddress(const std::string& run_dir)
    : folder_(open(run_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ < 0) fail(ExitCode::kUnusable, "[control] cannot open {}: {}", run_dir, std::strerror(errno));
  address_.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/control.sock", folder_);
  std::memcpy(address_.sun_path, path.c_str(), path.size() + 1);
}

SocketAddress::~SocketAddress() { close(folder_); }

}  // namespace tycho
