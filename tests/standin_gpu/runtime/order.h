// Happens-before of what a run does: a clock for each stream and each thread of the host, and for every byte
// who wrote it last and who has read it since. Knows nothing of CUDA, so that a written run can be done
// again.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace standin {

/// Bytes [begin, end).
struct Bytes {
  uintptr_t begin = 0, end = 0;
};

/// One thing that a run did. Streams and threads are actors, numbered together from 0 on.
struct Action {
  enum class Kind {
    kEnqueue,  // `thread` puts `name` on `stream`
    kHost,     // `thread` itself touches memory
    kRecord,   // of `event` on `stream`
    kStreamWait,
    kEventWait,
    kActorWait,  // `thread` waits for all of `stream`; or for everything, where it is -1
    kDone,       // `thread` was told that `event`, or where it is -1 `stream`, is done
    kEndEvent,
    kHandOver,  // `thread` gives all that it knows to `event`: to a new thread, or behind a lock
    kTakeOver,  // `thread` takes what was given to `event`
    kFree,      // memory in `writes` went back to the system: other memory may get the addresses
    kStep,      // a step has ended
  };
  Kind kind = Kind::kHost;
  int thread = 0, stream = -1;
  long event = -1;
  std::string name = {};
  std::vector<Bytes> reads = {}, writes = {};
};

/// A mistake that is made on purpose: the `number`th wait of a step (from 1) is left out, a record is made
/// before the newest operation of its stream, or a query is answered "done" though nothing has waited.
struct Mutant {
  enum class Kind { kNone, kNoWait, kEarlyRecord, kEarlyDone };
  Kind kind = Kind::kNone;
  long step = 0, number = 0;
};

class Order {
 public:
  explicit Order(Mutant mutant = {}) : mutant_(mutant) {}

  /// Goes on with an action. Returns a sentence about the first pair of operations on the same memory, one of
  /// which writes, that nothing orders; or about a wait for an event that was never recorded.
  std::optional<std::string> apply(const Action& action);

  /// True if the event was never recorded, or something has waited for what it marks; or, of event -1, for
  /// all of the stream.
  bool is_done(long event, int stream) const;
  /// Number of queries that were not told "done" in this step, with this one, decides whether the mutant is
  /// it.
  bool is_told_early();

  /// Pairs of operations that touch the same memory, one of them writing, and that edges order.
  long num_stream_pairs() const { return num_stream_pairs_; }  // on two streams
  long num_host_pairs() const { return num_host_pairs_; }      // on a stream and the host
  int step() const { return step_; }
  long num_waits() const { return num_waits_; }      // of this step, so far
  long num_records() const { return num_records_; }  // likewise
  /// Change that the mutant made, and whether it took an order away; "" before it was met.
  const std::string& changed() const { return changed_; }
  bool changed_nothing() const { return changed_nothing_; }

 private:
  using Clock = std::vector<uint32_t>;  // of each actor, how much of it came before
  struct Use {
    int actor = -1;
    uint32_t time = 0;
    int site = -1;
  };
  struct Segment {
    uintptr_t end = 0;
    Use write = {};
    std::vector<Use> reads = {};
  };
  struct Mark {  // of an event
    Clock clock;
    int stream = -1;
    std::string name;
  };
  struct Site {
    int actor = -1, step = 0;
    std::string name;
  };

  static void join(Clock& to, const Clock& from);
  static bool covers(const Clock& clock, const Clock& other);
  Clock& clock_of(int actor);
  void tick(int actor);
  bool is_left_out(const Action& action, const Clock& waiter, const Clock& waited);
  void wait(const Action& action, int waiter, const Clock& waited, bool is_host);
  void record(const Action& action);
  std::optional<std::string> use(const Action& action, int actor);
  std::optional<std::string> touch(const Bytes& bytes, bool writes, const Use& use);
  std::optional<std::string> check(const Bytes& at, const Use& before, bool wrote, const Use& use,
                                   bool writes);
  void split(uintptr_t at);
  void forget(const Bytes& bytes);
  std::string text_of(const Use& use, bool writes) const;

  Mutant mutant_;
  std::vector<Clock> clocks_, before_newest_;  // of each actor; the latter without its newest operation
  std::vector<bool> is_stream_;
  Clock waited_;  // what some thread of the host has waited for
  std::map<long, Mark> marks_;
  std::map<uintptr_t, Segment> segments_;
  std::vector<Site> sites_;
  std::set<int> paired_;  // sites that the current operation was compared with
  long num_stream_pairs_ = 0, num_host_pairs_ = 0, num_waits_ = 0, num_records_ = 0, num_not_done_ = 0;
  int step_ = 1;
  std::string changed_;
  bool changed_nothing_ = false;
};

/// One line, without its end.
std::string line_of(const Action& action);
Action action_of(const std::string& line);

}  // namespace standin
