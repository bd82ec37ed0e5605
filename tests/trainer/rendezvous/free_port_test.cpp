// A port that can be listened at.
#include "trainer/rendezvous/free_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tycho {
namespace {

TEST(FreePort, CanBeListenedAt) {
  const int port = free_port();
  ASSERT_GT(port, 0);
  ASSERT_LE(port, 65535);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  close(listener);
}

}  // namespace
}  // namespace tycho
