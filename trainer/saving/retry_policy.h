// When a failed save is tried again, and when its failures end the run: arithmetic over seconds of training.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace tycho {

/// Counts training time. While saves fail, all time since the oldest snapshot that is not saved is lost if
/// the run ends. Only rank 0's counts decide.
class RetryPolicy {
 public:
  /// `max_lost_s`: seconds of training that may be lost, ckpt.max_lost.
  explicit RetryPolicy(double max_lost_s) : max_lost_s_(max_lost_s) {}

  /// Adds a step to the time of training.
  void trained(int64_t step, double seconds) {
    trained_s_ += seconds;
    step_ = step;
    ++num_steps_;
  }
  /// Adds time that is lost like that of training.
  void waited(double seconds) { trained_s_ += seconds; }
  /// Marks the moment of the newest snapshot.
  void took_snapshot() { snapshot_s_ = trained_s_; }
  /// Marks the newest snapshot as saved.
  void succeeded() { failing_since_s_.reset(); }
  /// Marks the newest snapshot as not saved.
  void failed() { failing_since_s_ = failing_since_s_.value_or(snapshot_s_); }

  bool is_failing() const { return failing_since_s_.has_value(); }
  double max_lost_s() const { return max_lost_s_; }
  double lost_s() const { return trained_s_ - failing_since_s_.value_or(trained_s_); }
  double left_s() const { return std::max(0.0, max_lost_s_ - lost_s()); }
  bool allows_loss() const { return lost_s() <= max_lost_s_; }
  /// Seconds between two tries: a save is tried 20 times before the run ends, and at least every 30 s.
  double retry_s() const { return std::min(30.0, max_lost_s_ / 20); }
  /// Seconds until the next try, which follows a step.
  double next_try_s() const { return std::max(retry_s(), step_s()); }
  /// Returns the step after which to try again, where the save of `failed_step` has failed.
  int64_t retry_step(int64_t failed_step) const {
    const double steps = step_s() > 0 ? std::min(std::ceil(retry_s() / step_s()), 1e9) : 1;
    return std::max(step_, failed_step) + std::max<int64_t>(1, static_cast<int64_t>(steps));
  }

 private:
  double step_s() const { return num_steps_ > 0 ? trained_s_ / static_cast<double>(num_steps_) : 0; }

  double max_lost_s_;
  std::optional<double> failing_since_s_;  // time of training at the oldest snapshot that is not saved
  double trained_s_ = 0, snapshot_s_ = 0;  // so far, and at the newest snapshot
  int64_t num_steps_ = 0, step_ = 0;       // of this process, and the newest
};

}  // namespace tycho
