// What this process is doing: its step, its phase and the collective in which it waits. Torch-free.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace tycho {

/// State of a process, as reported to others.
struct ProgressReport {
  int64_t step = -1;       // the last complete step; -1 before the first one
  std::string phase;       // "starting", "in callback loss_watch"
  double phase_s = 0;      // time in this phase
  std::string collective;  // "" outside of a collective
  double collective_s = 0;
};

/// Seconds that a process spent on communication since it started.
struct CommTime {
  double wait_s = 0;      // in which a thread that computes waited in a collective
  double transfer_s = 0;  // time of collectives and messages, overlapping with computing or not
};

/// Time that a process that must end may spend on a save, wherever others wait for it.
inline constexpr auto kTimeToSave = std::chrono::minutes(10);
inline bool is_saving(std::string_view phase) { return phase.starts_with("saving"); }

/// Phase of a process whose user sits at a prompt inside a callback, for at most kTimeAtPrompt: less than the
/// limit of a collective, in which the others wait.
inline constexpr const char* kAtPrompt = "at a prompt of t.debug()";
inline constexpr auto kTimeAtPrompt = std::chrono::minutes(20);

/// Returns "step 12, evaluating for 31 s, all_reduce for 30 s". Times below two seconds are left out.
std::string progress_text(const ProgressReport& report);

/// Written by the threads that work, read by those that report. All functions from any thread.
class Progress {
 public:
  void set_step(int64_t step);
  /// Sets the phase. Returns the previous one.
  std::string set_phase(std::string phase);
  /// Sets the collective; "" when it has ended. Returns the previous one.
  std::string set_collective(std::string_view name);
  /// Adds the duration of a collective or a message, on whichever thread it ran.
  void add_transfer(double seconds);
  CommTime comm_time() const;
  /// Declares that a user sits at a prompt of this process, which may wait for hours: the process is never
  /// ended because its main thread does not move.
  void set_prompt();
  bool is_prompt() const;
  ProgressReport report() const;
  /// Returns the step, and copies the beginning of the phase into `phase`. Allocates nothing, for frequent
  /// callers.
  static constexpr size_t kPhaseChars = 31;
  int64_t copy_place(std::array<char, kPhaseChars + 1>& phase) const;

 private:
  using Clock = std::chrono::steady_clock;
  mutable std::mutex mutex_;
  int64_t step_ = -1;
  bool is_prompt_ = false;
  std::string phase_ = "starting", collective_;
  Clock::time_point phase_begin_ = Clock::now(), collective_begin_ = Clock::now();
  Clock::time_point wait_begin_;  // begin of the outermost collective
  CommTime comm_time_;
};

/// Progress of this process. The program and its engine have one each.
Progress& process_progress();

/// Sets the phase of a process while it lives.
class InPhase {
 public:
  explicit InPhase(std::string phase, Progress& progress = process_progress())
      : progress_(progress), before_(progress.set_phase(std::move(phase))) {}
  ~InPhase() { progress_.set_phase(std::move(before_)); }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  Progress& progress_;
  std::string before_;
};

/// Sets the collective of a process while it lives.
class InCollective {
 public:
  explicit InCollective(std::string_view name, Progress& progress = process_progress())
      : progress_(progress), before_(progress.set_collective(name)) {}
  ~InCollective() { progress_.set_collective(before_); }
  InCollective(const InCollective&) = delete;
  InCollective& operator=(const InCollective&) = delete;

 private:
  Progress& progress_;
  std::string before_;
};

}  // namespace tycho
