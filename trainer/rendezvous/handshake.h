// Mutual authentication of two processes of one run: messages in, messages out, no sockets.
// Torch-free.
//
//   client                                    listener
//   hello: its nonce                   ──►
//                                      ◄──    challenge: the listener's nonce
//   claim: who it is, proof of token   ──►
//                                      ◄──    verdict: the answer, proof of token
//   confirm                            ──►    the connection is open
//
// Each proof is an HMAC under the token over both nonces, the role, the protocol's version and the whole
// claim, so that none can be used again, reflected, or passed on to another rank. The listener tells nothing
// about the token before the client has proved that it knows it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/rendezvous/frames.h"

namespace tycho {

/// Version of everything that follows the handshake; grows with every change. The handshake itself stays as
/// it is, so that two builds can tell each other that they differ.
inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr size_t kMaxPurposeBytes = 80, kMaxRunBytes = 64;

/// Identity of a client, and the purpose of its call.
struct RankClaim {
  uint32_t version = kProtocolVersion;
  int rank = 0, num_ranks = 1;
  int to_rank = 0;      // rank that it calls
  std::string run;      // run of the client: tells runs with the same token apart
  std::string purpose;  // purpose of the connection
};

/// Convert between a claim and bytes. read_claim throws Error for bytes that are no claim.
std::string bytes_of(const RankClaim& claim);
RankClaim read_claim(std::string_view bytes);

enum class Answer : uint8_t {
  kWelcome = 0,
  kLater = 1,    // not now: call again
  kRefused = 2,  // never
};

struct HandshakeVerdict {
  Answer answer = Answer::kRefused;
  std::string why;  // for users; "" for a welcome
};

/// Side of the handshake that connects. Functions throw Error when the other side does not prove what it
/// should.
class HandshakeClient {
 public:
  HandshakeClient(std::string token, RankClaim claim);
  std::string hello() const;
  /// Returns the answer to the challenge.
  std::string claim(const Frame& challenge);
  /// Returns the listener's answer, after checking its proof of the token.
  HandshakeVerdict verdict(const Frame& frame) const;
  static std::string confirm();

 private:
  std::string token_, nonce_, server_nonce_;
  RankClaim claim_;
};

/// Side of the handshake that listens, for one connection.
class HandshakeServer {
 public:
  enum class State { kWaitsForHello, kWaitsForClaim, kWaitsForVerdict, kWaitsForConfirm, kOpen };

  explicit HandshakeServer(std::string token) : token_(std::move(token)) {}
  /// Returns the bytes to send. Throws Error for a message of a client that does not belong to this run. In
  /// kWaitsForVerdict the client has proved that it knows the token, and claim() is valid.
  std::string take(const Frame& frame);
  /// Returns the bytes that send `verdict`. Requires kWaitsForVerdict.
  std::string give(const HandshakeVerdict& verdict);

  State state() const { return state_; }
  bool has_proved() const { return state_ >= State::kWaitsForVerdict; }
  const RankClaim& claim() const { return claim_; }

 private:
  std::string token_, nonce_, client_nonce_;
  RankClaim claim_;
  State state_ = State::kWaitsForHello;
};

}  // namespace tycho
