// Keeps the ranks of one prompt in step: which entry runs, calls that need all of them, and how it ended.
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
#include "trainer/rendezvous/rank_group.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/session/engine.h"

namespace tycho {

/// How an entry ended on one rank.
struct EntryEnd {
  std::string status = "ok";  // "ok", "incomplete", "quit", "error"
  int exit = 0;               // exit code of an error
  std::string failure;        // text of the error for display; "" when there was none
  std::string shown;          // the printed values, compared across ranks
  std::string output;         // output of a rank that ran the entry alone
  bool is_echo = false;       // it failed only because another rank had
  std::string value;          // printed value of the expression, on this rank only
  Json place;                 // {file, line, column} of the failure, on this rank only
};

/// Keeps the ranks of a prompt together. Owned by the thread that runs entries. Each collective method throws
/// Error (kTerminated) when a rank has gone.
class InStep {
 public:
  /// Meets the other ranks; collective. An entry may take `patience_s` longer on one rank than on another.
  /// `stop` ends the wait for them.
  InStep(const EngineApi& engine, const RankInfo& place, double patience_s, const StopFlag& stop);

  int rank() const { return place_.rank; }
  int size() const { return place_.num_ranks; }

  /// Broadcasts rank 0's value. The other ranks wait for it without a time limit. Collective.
  Json hear(const Json& mine = nullptr);
  /// Calls `part` on every rank. Collective, but `part` must not be. Returns 0 when it succeeded on all. On a
  /// failure rank 0 throws its own Error, or one that names the first rank that failed; the other ranks get
  /// its exit code and need not report it.
  int together(const std::function<void()>& part);

  /// Begins an entry. Until end(), Ctrl-C at rank 0 raises SIGINT on all ranks; `stop` is the flag that
  /// SIGINT sets. `alone` is the only rank that evaluates the entry.
  void begin(std::optional<int> alone, const StopFlag& stop);
  /// Announces a call that needs all ranks, by its text; collective. Throws ScriptError when the ranks do not
  /// all make the same call, or this rank runs alone.
  void call(const std::string& what) { call(what, ""); }
  /// Returns rank 0's value on all ranks; on a rank that runs alone, or when a rank has gone, returns `mine`.
  /// `what` is the text for call().
  bool decide(const std::string& what, bool mine) {
    return alone_ || lost_ ? mine : call(what, mine ? "yes" : "no") == "yes";
  }
  /// Announces a call before a run is opened, and returns where its ranks meet.
  RankInfo meeting_place(const std::string& what);
  /// Throws ScriptError when this rank runs alone.
  void refuse_alone(const std::string& what) const;
  /// Ends the entry on this rank. Returns the end of every rank, by rank, once all have ended.
  std::vector<EntryEnd> end(EntryEnd mine);
  /// Records that a rank has gone: from now on calls that need all ranks throw ScriptError.
  void lose();

 private:
  /// Passes Ctrl-C on during its lifetime.
  class Relay {
   public:
    Relay(RankGroup& group, int64_t entry, bool sends, const StopFlag& stop);

   private:
    std::mutex mutex_;
    std::condition_variable_any ended_;
    std::jthread thread_;
  };

  std::vector<Json> gather(const Json& mine);
  /// Makes the call and returns what rank 0 sent with it.
  std::string call(const std::string& what, const std::string& said);

  RankInfo place_;
  std::unique_ptr<RankGroup> group_;
  std::unique_ptr<Relay> relay_;
  int64_t entries_ = 0, runs_ = 0;
  bool alone_ = false, is_echo_ = false, lost_ = false;
};

}  // namespace tycho
