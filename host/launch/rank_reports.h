// What a rank tells its launcher: that it is alive, its step and its phase.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace tycho {

/// The launcher's side of the pipe that launcher_reports.h writes to. Owned by one thread.
class RankReports {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws Error (kFailure) when the system has no descriptor left.
  RankReports();
  ~RankReports();
  RankReports(const RankReports&) = delete;
  RankReports& operator=(const RankReports&) = delete;

  /// The rank's end, for its start.
  int rank_end() const { return ends_[1]; }
  void close_rank_end();
  /// For poll(); -1 when the rank has closed its end.
  int file() const { return ends_[0]; }
  /// Takes what came.
  void read();

  /// How long a rank that is to end may take beyond the time that all have: until it has saved, or, where
  /// none is missing, until the step that it is in has taken as long as its longest. None for a rank that is
  /// silent or in a callback.
  Clock::duration allowance(bool can_step) const;
  /// Its newest words, such as "in callback loss_watch"; "" while it says nothing.
  std::string phase() const;

 private:
  void take(std::string_view line);
  bool is_fresh() const;

  int ends_[2] = {-1, -1};
  std::string rest_, phase_;
  int64_t step_ = -1;
  Clock::time_point heard_at_ = {}, step_at_ = {};
  Clock::duration longest_step_ = {};
};

}  // namespace tycho
