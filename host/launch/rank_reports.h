// The reports of a rank to its launcher: that it is alive, its step, its phase and its last error.
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

  /// Returns the rank's end of the pipe, to pass to its process.
  int rank_end() const { return ends_[1]; }
  void close_rank_end();
  /// Returns the descriptor for poll(); -1 when the rank has closed its end.
  int file() const { return ends_[0]; }
  /// Reads the reports that have arrived.
  void read();

  /// Returns how much longer than the others a rank that is to end may take: the time to save while it saves,
  /// or, with `can_step`, its longest step. Zero for a rank that is silent or in a callback.
  Clock::duration allowance(bool can_step) const;
  /// Returns its newest phase, such as "in callback loss_watch"; "" when there is none.
  std::string phase() const;
  /// Returns the error with which the rank ends; "" when it has reported none.
  const std::string& error() const { return error_; }

 private:
  void take(std::string_view line);
  bool is_fresh() const;

  int ends_[2] = {-1, -1};
  std::string rest_, phase_, error_;
  int64_t step_ = -1;
  Clock::time_point heard_at_ = {}, step_at_ = {};
  Clock::duration longest_step_ = {};
};

}  // namespace tycho
