// The messages between rank 0 and the other ranks. Torch-free.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/rendezvous/frames.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {

enum class ControlMessage : uint8_t {
  kIntroduction = 1,  // to rank 0: Member; the first message
  kMember,            // Member; one for each rank, then:
  kAllHere,           // all ranks have come; text: the name of this world
  kTurnedAway,        // text: reason why this rank cannot join
  kBeat,              // ProgressReport, every second, both ways
  kAbort,             // to rank 0: Cause
  kSuspect,           // to rank 0: LossReport
  kBroken,            // Cause: the error that all ranks report
  kHeard,             // to rank 0: kBroken was received
  kAsk,               // to rank 0: MarkQuestion
  kTold,              // MarkAnswer to kAsk
  kBye,               // this rank is done, without an error
  kAnswerRequest,     // text: a request for this rank's last collectives
};

/// A rank, and the address on which it listens.
struct Member {
  int rank = 0, pid = 0;
  std::string host;  // name of the rank's machine, for users
  std::string address;
  int port = 0;
};

/// Cause for which a world is broken.
struct Cause {
  int rank = 0;  // first rank of those who caused it
  ExitCode code = ExitCode::kTerminated;
  std::string text;
};

/// Report that a rank has lost its connection with others, or waits for them in vain.
struct LossReport {
  std::vector<int> ranks;
  std::string what;
};

/// Question whether a mark is set, after setting it if `sets`.
struct MarkQuestion {
  uint32_t number = 0;
  bool sets = false;
  std::string name;
};
struct MarkAnswer {
  uint32_t number = 0;
  bool is_marked = false;
};

std::string bytes_of(const Member& member);
std::string bytes_of(const Cause& cause);
std::string bytes_of(const LossReport& report);
std::string bytes_of(const ProgressReport& report);
std::string bytes_of(const MarkQuestion& question);
std::string bytes_of(const MarkAnswer& answer);
std::string bytes_of_text(std::string_view text);

/// Parse messages. Throw Error for bytes of another kind.
Member read_member(std::string_view bytes);
Cause read_cause(std::string_view bytes);
LossReport read_loss_report(std::string_view bytes);
ProgressReport read_report(std::string_view bytes);
MarkQuestion read_mark_question(std::string_view bytes);
MarkAnswer read_mark_answer(std::string_view bytes);
std::string read_text(std::string_view bytes);

}  // namespace tycho
