// A listener that is given to rank 0, and descriptors that are none.
#include "trainer/rendezvous/handed_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "trainer/base/error.h"
#include "trainer/rendezvous/endpoint.h"

namespace tycho {
namespace {

Socket listening() { return listen_at(numeric_endpoint("127.0.0.1", 0)); }

RankInfo place_with(int fd, int port) {
  return {.num_ranks = 2, .num_local_ranks = 2, .port = port, .listener = fd};
}

TEST(HandedListener, IsTakenOnce) {
  Socket listener = listening();
  const int port = local_end(listener.fd()).port();
  const RankInfo place = place_with(hand_over(std::move(listener)), port);
  const Socket taken = take_listener(place);
  ASSERT_EQ(taken.fd(), place.listener);
  EXPECT_EQ(fcntl(taken.fd(), F_GETFD), FD_CLOEXEC);
  EXPECT_NE(fcntl(taken.fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(local_end(taken.fd()).port(), port);
  EXPECT_FALSE(take_listener(place).is_open()) << "two owners would close it twice";
}

TEST(HandedListener, KeepsItsPortFromOthers) {
  Socket listener = listening();
  const Endpoint endpoint = local_end(listener.fd());
  const Socket handed(hand_over(std::move(listener)));
  EXPECT_THROW(listen_at(endpoint), Error);
}

TEST(HandedListener, AnythingElseIsLeftAlone) {
  EXPECT_FALSE(take_listener({}).is_open());
  EXPECT_FALSE(take_listener(place_with(12345, 4711)).is_open()) << "not open";
  const Socket file(open("/dev/null", O_RDONLY));
  EXPECT_FALSE(take_listener(place_with(file.fd(), 4711)).is_open());
  const Socket silent(socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_FALSE(take_listener(place_with(silent.fd(), 0)).is_open()) << "does not listen";
  const Socket elsewhere(hand_over(listening()));
  EXPECT_FALSE(take_listener(place_with(elsewhere.fd(), local_end(elsewhere.fd()).port() + 1)).is_open());
  for (const Socket* one : {&file, &silent, &elsewhere}) EXPECT_GE(fcntl(one->fd(), F_GETFD), 0) << "closed";
}

}  // namespace
}  // namespace tycho
