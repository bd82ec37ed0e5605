// Both sides of the handshake, and everything that an attacker may put in its place.
#include "trainer/rendezvous/handshake.h"

#include <gtest/gtest.h>

#include "tests/trainer/rendezvous/refusal.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";
const RankClaim kClaim{.rank = 1, .num_ranks = 4, .to_rank = 2, .run = "run", .purpose = "data world"};

Frame frame_of(const std::string& bytes) {
  FrameReader reader(kMaxCallerFrame);
  reader.add(bytes.substr(0, 4));
  return *reader.add(bytes.substr(4));
}

/// A client and a listener that have come to the claim.
struct Meeting {
  explicit Meeting(const std::string& token = kToken, const RankClaim& claim = kClaim)
      : client(token, claim),
        hello(client.hello()),
        challenge(server.take(frame_of(hello))),
        claim(client.claim(frame_of(challenge))) {}
  HandshakeServer server{kToken};
  HandshakeClient client;
  std::string hello, challenge, claim;
};

TEST(Handshake, OpensForTheSameTokenAndTellsWhoCalls) {
  Meeting meeting;
  EXPECT_FALSE(meeting.server.has_proved());
  EXPECT_EQ(meeting.server.take(frame_of(meeting.claim)), "");
  EXPECT_TRUE(meeting.server.has_proved());
  EXPECT_EQ(meeting.server.claim().rank, 1);
  EXPECT_EQ(meeting.server.claim().num_ranks, 4);
  EXPECT_EQ(meeting.server.claim().to_rank, 2);
  EXPECT_EQ(meeting.server.claim().run, "run");
  EXPECT_EQ(meeting.server.claim().purpose, "data world");
  EXPECT_EQ(meeting.server.claim().version, kProtocolVersion);
  const HandshakeVerdict verdict =
      meeting.client.verdict(frame_of(meeting.server.give({Answer::kWelcome, ""})));
  EXPECT_EQ(verdict.answer, Answer::kWelcome);
  meeting.server.take(frame_of(HandshakeClient::confirm()));
  EXPECT_EQ(meeting.server.state(), HandshakeServer::State::kOpen);
}

TEST(Handshake, ARefusalSaysWhy) {
  Meeting meeting;
  meeting.server.take(frame_of(meeting.claim));
  const std::string why(500, 'x');
  const HandshakeVerdict verdict =
      meeting.client.verdict(frame_of(meeting.server.give({Answer::kRefused, why})));
  EXPECT_EQ(verdict.answer, Answer::kRefused);
  EXPECT_EQ(verdict.why, why.substr(0, 200));
}

TEST(Handshake, ADifferentVersionIsToldAfterTheProof) {
  RankClaim claim = kClaim;
  claim.version = kProtocolVersion + 7;
  Meeting meeting(kToken, claim);
  meeting.server.take(frame_of(meeting.claim));
  EXPECT_EQ(meeting.server.claim().version, kProtocolVersion + 7);
}

TEST(Handshake, AnotherTokenProvesNothing) {
  Meeting meeting("another token, and a long one");
  EXPECT_CONTAINS(refusal_of([&] { meeting.server.take(frame_of(meeting.claim)); }),
                  "does not know the token");
  EXPECT_FALSE(meeting.server.has_proved());
}

TEST(Handshake, ADoorWithoutATokenLetsNobodyIn) {
  HandshakeServer server("");
  HandshakeClient client(kToken, kClaim);
  const std::string claim = client.claim(frame_of(server.take(frame_of(client.hello()))));
  EXPECT_CONTAINS(refusal_of([&] { server.take(frame_of(claim)); }), "does not know the token");
  EXPECT_THROW(HandshakeClient("", kClaim), Error);
}

TEST(Handshake, WhatWasHeardOnceCannotBeUsedAgain) {
  Meeting heard;
  HandshakeServer server(kToken);
  server.take(frame_of(heard.hello));
  EXPECT_CONTAINS(refusal_of([&] { server.take(frame_of(heard.claim)); }), "does not know the token");

  heard.server.take(frame_of(heard.claim));
  const std::string verdict = heard.server.give({Answer::kWelcome, ""});
  Meeting later;
  EXPECT_CONTAINS(refusal_of([&] { later.client.verdict(frame_of(verdict)); }), "does not know the token");
}

TEST(Handshake, AProofCannotBeReflected) {
  Meeting meeting;
  // The client's own proof, dressed as a verdict.
  Frame reflected = frame_of(meeting.claim);
  reflected.kind = 4;
  EXPECT_CONTAINS(refusal_of([&] { meeting.client.verdict(reflected); }), "does not know the token");
  // What the listener said, sent back to it.
  EXPECT_CONTAINS(refusal_of([&] { meeting.server.take(frame_of(meeting.challenge)); }), "sent no claim");
}

TEST(Handshake, AChangedByteIsNoticedWhereverItIs) {
  const Meeting meeting;
  for (size_t i = 5; i < meeting.claim.size(); ++i) {
    HandshakeServer server = meeting.server;
    std::string changed = meeting.claim;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_THROW(server.take(frame_of(changed)), Error) << i;
    EXPECT_FALSE(server.has_proved());
  }
  HandshakeServer server = meeting.server;
  server.take(frame_of(meeting.claim));
  const std::string verdict = server.give({Answer::kRefused, "why"});
  for (size_t i = 5; i < verdict.size(); ++i) {
    std::string changed = verdict;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_THROW(meeting.client.verdict(frame_of(changed)), Error) << i;
  }
}

TEST(Handshake, AnAnswerToAnotherClaimIsNoAnswer) {
  Meeting meeting;
  meeting.server.take(frame_of(meeting.claim));
  RankClaim other = kClaim;
  other.to_rank = 3;
  HandshakeClient twin(kToken, other);
  twin.claim(frame_of(meeting.challenge));
  EXPECT_THROW(twin.verdict(frame_of(meeting.server.give({Answer::kWelcome, ""}))), Error);
}

TEST(Handshake, MessagesOutOfTurnAreRefused) {
  Meeting meeting;
  EXPECT_THROW(HandshakeServer(kToken).take(frame_of(meeting.claim)), Error);
  EXPECT_THROW(HandshakeServer(kToken).take(frame_of(HandshakeClient::confirm())), Error);
  EXPECT_THROW(meeting.server.take(frame_of(meeting.hello)), Error);
  meeting.server.take(frame_of(meeting.claim));
  EXPECT_THROW(meeting.server.take(frame_of(meeting.claim)), Error);
  EXPECT_THROW(meeting.client.claim(frame_of(meeting.claim)), Error);
  EXPECT_THROW(meeting.client.verdict(frame_of(meeting.challenge)), Error);
}

TEST(Handshake, EveryMessageFitsIntoAFrameOfTheHandshake) {
  RankClaim claim = kClaim;
  claim.run = std::string(kMaxRunBytes, 'r');
  claim.purpose = std::string(kMaxPurposeBytes, 'p');
  Meeting meeting(kToken, claim);
  EXPECT_LE(meeting.claim.size(), kMaxCallerFrame + 4);
  meeting.server.take(frame_of(meeting.claim));
  EXPECT_LE(meeting.server.give({Answer::kRefused, std::string(10000, 'w')}).size(), kMaxCallerFrame + 4);
  claim.purpose += 'p';
  EXPECT_THROW(HandshakeClient(kToken, claim), Error);
}

}  // namespace
}  // namespace tycho
