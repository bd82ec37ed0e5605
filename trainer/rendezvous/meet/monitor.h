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
#include "trainer/rendezvous/meet/roster.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

/// Base of the monitors. Rank 0's (RootMonitor) has a line to every rank and decides why the world is broken;
/// that of the others (MemberMonitor) has one line, to rank 0. Each sends the progress of its process to the
/// other ends every second. Functions of subclasses run on the thread, under the lock.
class Monitor {
 public:
  virtual ~Monitor() = default;
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // From any thread.
  int broken_fd() const { return broken_.fd(); }
  bool is_broken() const { return is_broken_; }
  std::optional<Cause> cause() const;
  /// Members in the order of ranks, and the name of their world; both are empty before all ranks have met.
  std::vector<Member> members() const;
  std::string world() const;
  /// True if this rank came and left well, or came to a world that is broken: it comes to a later one at
  /// the same place, such as a run that is started again.
  bool has_left(int rank) const;
  /// Ranks that have not come.
  std::vector<int> missing() const;
  void mark(const std::string& name) { ask({0, true, name}); }
  bool is_marked(const std::string& name) { return ask({0, false, name}); }

  /// Waits up to `time`. Returns true if the ranks have met or the world is broken.
  bool wait_until_met(std::chrono::milliseconds time);
  /// See Peers::why_broken.
  Error why_broken(const std::string& what, const std::vector<int>& suspects);
  /// See Peers::abort. Returns when all others know the error, or after a moment.
  Error abort(const Error& error);
  /// Breaks the world with this cause, unless it is broken already.
  void break_world(Cause cause);

 protected:
  using Clock = Roster::Clock;

  Monitor(const RankInfo& place, MeetOptions options, Member self);
  /// Subclasses call begin() at the end of their constructor, and end() at the beginning of their destructor.
  void begin();
  void end();

  virtual std::vector<ControlLine*> lines() = 0;
  virtual void serve(ControlLine& line) = 0;
  /// Called every beat.
  virtual void tick() = 0;
  /// Called after a message has come, or another thread has asked for something.
  virtual void obey() = 0;
  /// Returns the next time at which obey() must be called.
  virtual Clock::time_point next() const { return Clock::time_point::max(); }
  /// Called when the world has just been broken.
  virtual void on_broken() {}
  /// Returns true if this side may end: nothing is left to send or receive.
  virtual bool may_end() = 0;
  /// Answers a question about a mark now, or returns nothing and answers later through answers_.
  virtual std::optional<bool> answer(const MarkQuestion& question) = 0;

  void set_cause(Cause cause);
  int num_silent_beats() const;
  /// Writes a line without blocking, even if standard error is a full pipe: this may be the last thread of
  /// the process that still runs.
  static void write_line(const std::string& line);
  /// Wakes the thread to handle requests of other threads.
  void wake();

  const RankInfo place_;
  const MeetOptions options_;
  const Member self_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Roster roster_;
  std::string world_;  // "" until all have come
  std::optional<Cause> cause_;
  // Requests of other threads, taken by obey().
  std::optional<Cause> aborting_;
  std::optional<LossReport> loss_report_;
  std::vector<MarkQuestion> questions_;
  std::map<uint32_t, bool> answers_;
  bool ends_ = false;
  bool all_have_heard_ = false;  // all ranks know the cause
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
  std::optional<Clock::time_point> saved_at_;  // time at which the main thread was last seen to save, after
                                               // the world broke
  uint32_t num_questions_ = 0;
  std::thread thread_;
};

}  // namespace tycho
