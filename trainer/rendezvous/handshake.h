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

/// Grows with every change to what follows the handshake. The handshake itself stays as it is, so that two
/// builds can tell each other that they differ.
inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr size_t kMaxPurposeBytes = 80, kMaxRunBytes = 64;

/// Who calls, and why.
struct RankClaim {
  uint32_t version = kProtocolVersion;
  int rank = 0, num_ranks = 1;
  int to_rank = 0;      // whom it wants
  std::string run;      // of which run: told apart from others that have the same token
  std::string purpose;  // of the connection
};

/// A claim as bytes, and back; throws Error for bytes that are none.
std::string bytes_of(const RankClaim& claim);
RankClaim read_claim(std::string_view bytes);

enum class Answer : uint8_t {
  kWelcome = 0,
  kLater = 1,    // not now: call again
  kRefused = 2,  // never
};

struct HandshakeVerdict {
  Answer answer = Answer::kRefused;
  std::string why;  // for people; "" for a welcome
};

/// The side that connects. Functions throw Error when the other side does not prove what it should.
class HandshakeClient {
 public:
  HandshakeClient(std::string token, RankClaim claim);
  std::string hello() const;
  /// What answers the challenge.
  std::string claim(const Frame& challenge);
  /// The listener knows the token: its answer.
  HandshakeVerdict verdict(const Frame& frame) const;
  static std::string confirm();

 private:
  std::string token_, nonce_, server_nonce_;
  RankClaim claim_;
};

/// The side that listens, for one connection.
class HandshakeServer {
 public:
  enum class State { kWaitsForHello, kWaitsForClaim, kWaitsForVerdict, kWaitsForConfirm, kOpen };

  explicit HandshakeServer(std::string token) : token_(std::move(token)) {}
  /// What is to be sent; throws Error when the client has no business here. After kWaitsForVerdict the client
  /// has proved that it knows the token, and claim() is what it claims.
  std::string take(const Frame& frame);
  /// In kWaitsForVerdict: what is to be sent.
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
