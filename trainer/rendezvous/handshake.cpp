// The five messages and their proofs.
#include "trainer/rendezvous/handshake.h"

#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/hmac.h"
#include "trainer/base/random/random_bytes.h"

namespace tycho {
namespace {

enum Kind : uint8_t { kHello = 1, kChallenge, kClaim, kVerdict, kConfirm };

constexpr std::string_view kMagic = "tycho ranks";
constexpr size_t kNonceBytes = 32;
constexpr size_t kMaxWhyBytes = 200;  // so that a verdict fits into a frame of the handshake

[[noreturn]] void no_tycho(const char* message) {
  fail(ExitCode::kTopology, "[ranks] the other end sent no {} of Tycho", message);
}

std::string nonce_message(Kind kind, const std::string& nonce) {
  WireWriter body;
  return frame_bytes(kind, body.text(kMagic).text(nonce).bytes());
}

/// Returns the nonce of a hello or challenge.
std::string nonce_of(const Frame& frame, Kind kind, const char* name) {
  if (frame.kind != kind) no_tycho(name);
  WireReader reader(frame.body);
  if (reader.text(kMagic.size()) != kMagic) no_tycho(name);
  std::string nonce = reader.text(kNonceBytes);
  reader.end();
  if (nonce.size() != kNonceBytes) no_tycho(name);
  return nonce;
}

std::string proof(const std::string& token, const char* role, const std::string& client_nonce,
                  const std::string& server_nonce, std::string_view what) {
  WireWriter proved;
  proved.text(kMagic).text(role).text(client_nonce).text(server_nonce).text(what);
  return hmac_sha256(token, proved.bytes());
}

constexpr const char* kClientRole = "client";
constexpr const char* kServerRole = "server";

std::string verdict_body(const HandshakeVerdict& verdict) {
  WireWriter body;
  return body.u8(static_cast<uint8_t>(verdict.answer)).text(verdict.why).bytes();
}

}  // namespace

std::string bytes_of(const RankClaim& claim) {
  WireWriter body;
  body.u32(claim.version).u32(static_cast<uint32_t>(claim.rank)).u32(static_cast<uint32_t>(claim.num_ranks));
  return body.u32(static_cast<uint32_t>(claim.to_rank)).text(claim.run).text(claim.purpose).bytes();
}

RankClaim read_claim(std::string_view bytes) {
  WireReader reader(bytes);
  RankClaim claim;
  claim.version = reader.u32();
  claim.rank = static_cast<int>(reader.u32());
  claim.num_ranks = static_cast<int>(reader.u32());
  claim.to_rank = static_cast<int>(reader.u32());
  claim.run = reader.text(kMaxRunBytes);
  claim.purpose = reader.text(kMaxPurposeBytes);
  reader.end();
  return claim;
}

HandshakeClient::HandshakeClient(std::string token, RankClaim claim)
    : token_(std::move(token)), nonce_(random_bytes(kNonceBytes)), claim_(std::move(claim)) {
  TYCHO_CHECK(!token_.empty(), "[ranks] a rank cannot prove anything without a token");
  TYCHO_CHECK(claim_.purpose.size() <= kMaxPurposeBytes && claim_.run.size() <= kMaxRunBytes,
              "[ranks] the purpose or the run of a connection is too long: \"{}\", \"{}\"", claim_.purpose,
              claim_.run);
}

std::string HandshakeClient::hello() const { return nonce_message(kHello, nonce_); }

std::string HandshakeClient::claim(const Frame& challenge) {
  server_nonce_ = nonce_of(challenge, kChallenge, "challenge");
  const std::string body = bytes_of(claim_);
  WireWriter message;
  message.text(body).text(proof(token_, kClientRole, nonce_, server_nonce_, body));
  return frame_bytes(kClaim, message.bytes());
}

HandshakeVerdict HandshakeClient::verdict(const Frame& frame) const {
  if (frame.kind != kVerdict) no_tycho("verdict");
  WireReader reader(frame.body);
  const std::string body = reader.text(kMaxCallerFrame), given = reader.text(kDigestBytes);
  reader.end();
  // The claim is part of the listener's proof, which shows that it knows who called.
  const std::string wanted = proof(token_, kServerRole, nonce_, server_nonce_, bytes_of(claim_) + body);
  if (!equal_in_constant_time(given, wanted))
    fail(ExitCode::kTopology, "[ranks] whoever listens there does not know the token of this run");
  WireReader words(body);
  HandshakeVerdict verdict;
  const uint8_t answer = words.u8();
  if (answer > static_cast<uint8_t>(Answer::kRefused)) no_tycho("verdict");
  verdict.answer = static_cast<Answer>(answer);
  verdict.why = words.text(kMaxWhyBytes);
  words.end();
  return verdict;
}

std::string HandshakeClient::confirm() { return frame_bytes(kConfirm, ""); }

std::string HandshakeServer::take(const Frame& frame) {
  switch (state_) {
    case State::kWaitsForHello:
      client_nonce_ = nonce_of(frame, kHello, "hello");
      nonce_ = random_bytes(kNonceBytes);
      state_ = State::kWaitsForClaim;
      return nonce_message(kChallenge, nonce_);
    case State::kWaitsForClaim: {
      if (frame.kind != kClaim) no_tycho("claim");
      WireReader reader(frame.body);
      const std::string body = reader.text(kMaxCallerFrame), given = reader.text(kDigestBytes);
      reader.end();
      const std::string wanted = proof(token_, kClientRole, client_nonce_, nonce_, body);
      if (token_.empty() || !equal_in_constant_time(given, wanted))
        fail(ExitCode::kTopology, "[ranks] a client does not know the token of this run");
      claim_ = read_claim(body);
      state_ = State::kWaitsForVerdict;
      return "";
    }
    case State::kWaitsForConfirm:
      if (frame.kind != kConfirm) no_tycho("confirmation");
      state_ = State::kOpen;
      return "";
    case State::kWaitsForVerdict:
    case State::kOpen: break;
  }
  fail(ExitCode::kTopology, "[ranks] a client speaks when it is not its turn");
}

std::string HandshakeServer::give(const HandshakeVerdict& verdict) {
  const HandshakeVerdict cut{verdict.answer, verdict.why.substr(0, kMaxWhyBytes)};
  const std::string body = verdict_body(cut);
  WireWriter message;
  message.text(body).text(proof(token_, kServerRole, client_nonce_, nonce_, bytes_of(claim_) + body));
  state_ = State::kWaitsForConfirm;
  return frame_bytes(kVerdict, message.bytes());
}

}  // namespace tycho
