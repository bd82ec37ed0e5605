// What the ranks of one prompt agree on: which entry runs, calls that need all of them, and how it ended.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/engine/engine.h"
#include "trainer/rendezvous/rank_group.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

/// How an entry ended on one rank.
struct EntryEnd {
  std::string status = "ok";  // "ok", "incomplete", "quit", "error"
  int exit = 0;               // of an error
  std::string failure;        // what was raised, as people read it; "" for nothing
  std::string shown;          // the values, as ranks compare them
  std::string output;         // of a rank that ran it alone: what it printed
  bool is_echo = false;       // it failed because another rank had
  std::string value;          // what the expression printed; of this rank only
  Json place;                 // {file, line, column} of the failure; likewise
};

/// Owned by the thread that runs entries. What is collective throws Error (kTerminated) when a rank has gone.
class InStep {
 public:
  /// Meets the other ranks; collective. An entry may take `patience_s` longer on one rank than on another.
  /// `stop` ends the wait for them.
  InStep(const EngineApi& engine, const RankPlace& place, double patience_s, const StopFlag& stop);

  int rank() const { return place_.rank; }
  int size() const { return place_.num_ranks; }

  /// What rank 0 has to say, on every rank; the others wait for as long as it takes. Collective.
  Json hear(const Json& mine = nullptr);
  /// Calls `part` on every rank. Collective; `part` is not. Returns 0 when it worked on all. When it failed,
  /// rank 0 throws, its own Error or that of the first rank that failed, which it names; the others, who need
  /// not say it again, get its exit code.
  int together(const std::function<void()>& part);

  /// The entry begins. From here to end() Ctrl-C at rank 0 raises SIGINT on all ranks: `stop` is what that
  /// sets. `alone`: the only rank that evaluates it.
  void begin(std::optional<int> alone, const StopFlag& stop);
  /// Before a call that needs all ranks, by its text; collective. Throws ScriptError when they do not all
  /// make the same call, or this rank runs alone.
  void call(const std::string& what) { call(what, ""); }
  /// What rank 0 decides, on all ranks; of a rank that runs alone or is left, what it decides itself. `what`:
  /// as of call().
  bool decide(const std::string& what, bool mine) {
    return alone_ || lost_ ? mine : call(what, mine ? "yes" : "no") == "yes";
  }
  /// call() before a run is opened: where its ranks meet.
  RankPlace meeting_place(const std::string& what);
  /// Throws ScriptError when this rank runs alone.
  void refuse_alone(const std::string& what) const;
  /// This rank has ended the entry: how each of them did, by rank, when all have.
  std::vector<EntryEnd> end(EntryEnd mine);
  /// A rank has gone: from now on calls that need all of them throw ScriptError.
  void lose();

 private:
  /// Passes Ctrl-C on while it lives.
  class Relay {
   public:
    Relay(RankGroup& group, int64_t entry, bool sends, const StopFlag& stop);

   private:
    std::mutex mutex_;
    std::condition_variable_any ended_;
    std::jthread thread_;
  };

  std::vector<Json> gather(const Json& mine);
  /// What rank 0 says beside its call.
  std::string call(const std::string& what, const std::string& said);

  RankPlace place_;
  std::unique_ptr<RankGroup> group_;
  std::unique_ptr<Relay> relay_;
  int64_t entries_ = 0, runs_ = 0;
  bool alone_ = false, is_echo_ = false, lost_ = false;
};

}  // namespace tycho
