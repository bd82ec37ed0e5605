// A thread that monitors the ranks of a world, whatever the main thread does. Torch-free.
#pragma once
#include <poll.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/rendezvous/meet/control_line.h"
#include "trainer/rendezvous/meet/control_messages.h"
#include "trainer/rendezvous/meet/meet_options.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/rendezvous/rank_place.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

/// Rank 0's (RootMonitor) has a line to every rank and decides why the world is broken; that of the others
/// (MemberMonitor) has one to rank 0. Each tells the other ends every second how this process gets on. What a
/// subclass adds runs on the thread, under the lock.
class Monitor {
 public:
  virtual ~Monitor() = default;
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // From any thread.
  int broken_fd() const { return broken_.fd(); }
  bool is_broken() const { return is_broken_; }
  std::optional<Cause> cause() const;
  /// All ranks by rank, and the name of the world that they are; empty before they have met.
  std::vector<Member> members() const;
  std::string world() const;
  /// Of the ranks that have not come.
  std::vector<int> missing() const;
  void mark(const std::string& name) { ask({0, true, name}); }
  bool is_marked(const std::string& name) { return ask({0, false, name}); }

  /// Returns whether the ranks have met or the world is broken.
  bool wait_until_met(std::chrono::milliseconds time);
  /// As of Peers.
  Error why_broken(const std::string& what, const std::vector<int>& suspects);
  /// As of Peers. Returns when all others know it, or after a moment.
  Error leave(const Error& error);
  /// The world is broken, unless it already was.
  void break_world(Cause cause);

 protected:
  using Clock = std::chrono::steady_clock;

  Monitor(const RankPlace& place, MeetOptions options, Member self);
  /// A subclass calls it at the end of its constructor, and end() at the beginning of its destructor.
  void begin();
  void end();

  virtual std::vector<ControlLine*> lines() = 0;
  virtual void serve(ControlLine& line) = 0;
  /// Every beat.
  virtual void tick() = 0;
  /// After something has come, or was asked for by another thread.
  virtual void obey() = 0;
  /// The next time at which obey() has something to do.
  virtual Clock::time_point next() const { return Clock::time_point::max(); }
  /// The world has just been broken.
  virtual void on_broken() {}
  /// Nothing is left to be said or heard before this side may go.
  virtual bool may_end() = 0;
  /// A question about a mark: answered at once, or later through answers_.
  virtual std::optional<bool> answer(const MarkQuestion& question) = 0;

  void set_cause(Cause cause);
  void set_ended(int rank);
  bool has_ended(int rank) const { return ended_.count(rank) > 0; }
  int num_silent_beats() const;
  /// Makes the thread look at what was asked for.
  void wake();

  /// "rank 1 (node3, pid 77; step 12, saving)".
  std::string describe(int rank) const;
  std::string describe(const std::vector<int>& ranks) const;
  Cause gone(const std::vector<int>& ranks, const std::string& how) const;
  /// Of ranks to which a connection broke, or who did not come.
  Cause unreachable(const std::vector<int>& ranks, const std::string& what) const;

  const RankPlace place_;
  const MeetOptions options_;
  const Member self_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Member> members_;  // those who have come; this rank among them
  std::map<int, ProgressReport> reports_;
  std::string world_;  // "" until all have come
  std::optional<Cause> cause_;
  std::map<int, Clock::time_point> ended_;  // ranks that ended well
  // What other threads ask for; taken by obey().
  std::optional<Cause> leaving_;
  std::optional<Suspicion> suspicion_;
  std::vector<MarkQuestion> questions_;
  std::map<uint32_t, bool> answers_;
  bool ends_ = false;
  bool all_have_heard_ = false;  // why the world is broken
  bool said_bye_ = false;

 private:
  void run();
  void beat();
  void end_process_if_stuck();
  bool ask(MarkQuestion question);
  void signal_broken();
  Error end_of(const Error& own) const;

  Socket wake_, broken_;  // event counters
  std::atomic<bool> is_broken_ = false;
  Clock::time_point broken_at_;
  std::optional<Clock::time_point> saved_at_;  // since then, when it was last seen to save
  uint32_t num_questions_ = 0;
  std::thread thread_;
};

}  // namespace tycho
