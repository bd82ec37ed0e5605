// Fuzz targets: short texts, patterns, and what ranks send each other.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "trainer/base/bytes.h"
#include "trainer/base/duration.h"
#include "trainer/base/error.h"
#include "trainer/base/regex.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/rendezvous/handshake.h"
#include "trainer/rendezvous/meet/control_messages.h"
#include "trainer/rendezvous/slurm_lists.h"

namespace tycho {
namespace {

/// A pattern, and from the second line on the text that it is looked for in.
void regex(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const Regex pattern{std::string(bytes.substr(0, end))};
  const std::string text(bytes.substr(end));
  pattern.is_found_in(text);
  pattern.matches_all_of(text);
  pattern.replaced_in(text, "<\\1>");
}

/// Lengths, sizes and command lines: their text reads back the same.
void quantities(std::string_view bytes) {
  refused_or_taken([&] {
    const Duration duration = Duration::parse(bytes);
    must(Duration::parse(duration.str()) == duration, "a duration reads back as another");
  });
  refused_or_taken([&] {
    const Bytes size = Bytes::parse(bytes);
    must(Bytes::parse(size.str()) == size, "a size reads back as another");
  });
  refused_or_taken([&] {
    const std::vector<std::string> words = split_shell_line(std::string(bytes));
    must(split_shell_line(shell_line(words)) == words, "words read back as others");
  });
}

void slurm_lists(std::string_view bytes) {
  refused_or_taken([&] { expand_slurm_hosts(bytes); });
  refused_or_taken([&] { expand_slurm_counts(bytes); });
}

/// Hands every frame to `take`, in the pieces in which a socket gives them.
template <class Take>
void each_frame(std::string_view bytes, size_t max_frame, Take&& take) {
  FrameReader reader(max_frame);
  while (!bytes.empty()) {
    const size_t n = std::min(reader.wanted(), bytes.size());
    if (const auto frame = reader.add(bytes.substr(0, n))) take(*frame);
    bytes.remove_prefix(n);
  }
}

/// As the monitors of ranks read it, by its kind; kinds that have no body are read as another's.
void read_message(const Frame& frame) {
  switch (static_cast<ControlMessage>(frame.kind)) {
    case ControlMessage::kIntroduction:
    case ControlMessage::kMember: read_member(frame.body); return;
    case ControlMessage::kBeat: progress_text(read_report(frame.body)); return;
    case ControlMessage::kAbort:
    case ControlMessage::kBroken: bytes_of(read_cause(frame.body)); return;
    case ControlMessage::kSuspect: bytes_of(read_loss_report(frame.body)); return;
    case ControlMessage::kAsk: read_mark_question(frame.body); return;
    case ControlMessage::kTold: read_mark_answer(frame.body); return;
    case ControlMessage::kAllHere:
    case ControlMessage::kTurnedAway:
    case ControlMessage::kAnswerRequest: read_text(frame.body); return;
    default: read_claim(frame.body); return;
  }
}

/// Bytes from the network, as a listener, a client and a rank that has been let in get them.
void rank_messages(std::string_view bytes) {
  constexpr const char* kToken = "0123456789abcdef";
  refused_or_taken([&] {
    HandshakeServer server(kToken);
    each_frame(bytes, kMaxCallerFrame, [&](const Frame& frame) { server.take(frame); });
  });
  refused_or_taken([&] {
    HandshakeClient client(kToken, {.purpose = "join"});
    each_frame(bytes, kMaxCallerFrame, [&](const Frame& frame) {
      refused_or_taken([&] { client.verdict(frame); });
      client.claim(frame);
    });
  });
  refused_or_taken([&] {
    each_frame(bytes, kMaxFrame, [](const Frame& frame) { refused_or_taken([&] { read_message(frame); }); });
  });
}

}  // namespace

std::vector<FuzzTarget> text_fuzz_targets() {
  return {{"regex", regex, 256},
          {"quantities", quantities, 64},
          {"slurm_lists", slurm_lists, 64},
          {"rank_messages", rank_messages, 512}};
}

}  // namespace tycho
