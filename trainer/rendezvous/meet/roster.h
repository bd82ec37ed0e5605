// The ranks of a world as one of them knows them: who came, what each said last, who ended. Torch-free.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/rendezvous/meet/control_messages.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {

/// Not locked: a monitor guards its roster.
class Roster {
 public:
  using Clock = std::chrono::steady_clock;

  Roster(int num_ranks, Member self) : num_ranks_(num_ranks) { add(std::move(self)); }

  void add(Member member);
  /// Returns a rank that has come, or null.
  const Member* find(int rank) const;
  const std::map<int, Member>& members() const { return members_; }
  bool is_complete() const { return static_cast<int>(members_.size()) == num_ranks_; }
  /// Ranks that have not come.
  std::vector<int> missing() const;

  void set_report(int rank, ProgressReport report) { reports_[rank] = std::move(report); }
  /// Returns true if a rank that has not ended is in one collective for `seconds` or longer.
  bool hangs(double seconds) const;

  /// Notes that a rank ended well, now.
  void set_ended(int rank) { ended_.emplace(rank, Clock::now()); }
  bool has_ended(int rank) const { return ended_.contains(rank); }
  /// Returns those of the ranks that ended well; of all ranks, where `ranks` is empty.
  std::vector<int> ended(const std::vector<int>& ranks) const;
  /// Returns true if a rank ended more than `seconds` ago.
  bool has_one_ended_for(double seconds) const;

  /// Description for messages: "rank 1 (node3, pid 77; step 12, saving)".
  std::string describe(int rank) const;
  std::string describe(const std::vector<int>& ranks) const;
  Cause gone(const std::vector<int>& ranks, const std::string& how) const;
  /// Cause for ranks to which a connection broke, or who did not come.
  Cause unreachable(const std::vector<int>& ranks, const std::string& what) const;

 private:
  int num_ranks_;
  std::map<int, Member> members_;
  std::map<int, ProgressReport> reports_;
  std::map<int, Clock::time_point> ended_;  // ranks that ended well
};

}  // namespace tycho
