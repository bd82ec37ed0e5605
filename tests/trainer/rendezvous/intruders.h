// Hostile clients of a rank's listener, without a token.
#pragma once
#include <sys/socket.h>

#include <array>
#include <string>

#include "trainer/rendezvous/endpoint.h"
#include "trainer/rendezvous/handshake.h"

namespace tycho {

/// A connection; closing it leaves nothing behind. Not open when the listener's queue is full.
inline Socket connect_to(const Endpoint& listener) {
  Socket socket(::socket(listener.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger at_once = {1, 0};
  setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  const timeval patience = {2, 0};
  setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(socket.fd(), listener.address(), listener.size) != 0) socket.close();
  return socket;
}

inline void send_bytes(const Socket& socket, std::string_view bytes) {
  const ssize_t ignored = send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  static_cast<void>(ignored);
}

/// What the listener answers within a moment, as a frame; of kind 0 when it says nothing.
inline Frame listen_to(const Socket& socket) {
  FrameReader reader(kMaxCallerFrame);
  std::array<char, kMaxCallerFrame> bytes;
  while (true) {
    const ssize_t n = recv(socket.fd(), bytes.data(), std::min(bytes.size(), reader.wanted()), 0);
    if (n <= 0) return {};
    if (const auto frame = reader.add({bytes.data(), static_cast<size_t>(n)})) return *frame;
  }
}

inline constexpr int kKindsOfIntruders = 10;

/// Connects as one of ten kinds of intruders. A connection that it leaves open is the caller's.
inline Socket send_intruder(int kind, const Endpoint& listener, int num_ranks) {
  Socket socket = connect_to(listener);
  if (!socket.is_open()) return socket;
  const RankClaim claim{.rank = 1, .num_ranks = num_ranks, .purpose = "join"};
  switch (kind % kKindsOfIntruders) {
    case 0: return socket;  // silent
    case 1: send_bytes(socket, std::string(4096, '\xa5')); break;
    case 2:
      send_bytes(socket, HandshakeClient("x", claim).hello().substr(0, 20));
      return socket;  // half a frame
    case 3:
      send_bytes(socket, std::string("\xff\xff\xff\xff\x01", 5) + std::string(1024, 'x'));
      return socket;
    case 4: {  // a wrong token
      HandshakeClient client("a token that nobody has given out", claim);
      send_bytes(socket, client.hello());
      if (const Frame challenge = listen_to(socket); challenge.kind != 0)
        send_bytes(socket, client.claim(challenge));
      break;
    }
    case 5: {  // a recorded handshake, with another listener's nonce
      static const std::string heard = [&] {
        HandshakeServer server("t");
        HandshakeClient client("t", claim);
        FrameReader reader(kMaxCallerFrame);
        const std::string hello = client.hello();
        reader.add(hello.substr(0, 4));
        const std::string challenge = server.take(*reader.add(hello.substr(4)));
        reader.add(challenge.substr(0, 4));
        return hello + client.claim(*reader.add(challenge.substr(4)));
      }();
      send_bytes(socket, heard);
      break;
    }
    case 6: {  // what the listener says, sent back to it
      send_bytes(socket, HandshakeClient("x", claim).hello());
      if (const Frame challenge = listen_to(socket); challenge.kind != 0)
        send_bytes(socket, frame_bytes(challenge.kind, challenge.body) + frame_bytes(1, challenge.body));
      break;
    }
    case 7:  // slow
      for (const char byte : HandshakeClient("x", claim).hello().substr(0, 5)) send_bytes(socket, {&byte, 1});
      return socket;
    case 8: send_bytes(socket, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); break;
    default: socket.close();  // gone at once
  }
  return socket;
}

}  // namespace tycho
