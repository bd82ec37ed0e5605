// What this process is doing: its step, its phase and the collective in which it waits. Torch-free.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace tycho {

/// What others are told about a process.
struct ProgressReport {
  int64_t step = -1;       // the newest that is complete; -1 before the first is known
  std::string phase;       // "starting", "in callback loss_watch"
  double phase_s = 0;      // how long it has been in this phase
  std::string collective;  // "" outside of one
  double collective_s = 0;
};

/// Seconds of a process with other ranks, since it started.
struct CommTime {
  double wait_s = 0;      // in which a thread that computes was in a collective
  double transfer_s = 0;  // that collectives and messages took, beside computing or not
};

/// How long a process that is to end may save, wherever it is waited for.
inline constexpr auto kTimeToSave = std::chrono::minutes(10);
inline bool is_saving(std::string_view phase) { return phase.starts_with("saving"); }

/// "step 12, evaluating for 31 s, all_reduce for 30 s": times from two seconds on.
std::string progress_text(const ProgressReport& report);

/// Written by the threads that work, read by those that report. All functions from any thread.
class Progress {
 public:
  void set_step(int64_t step);
  /// Returns the phase before.
  std::string set_phase(std::string phase);
  /// Returns the collective before; "" when it has ended.
  std::string set_collective(std::string_view name);
  /// A collective or a message took so long, on whichever thread.
  void add_transfer(double seconds);
  CommTime comm_time() const;
  /// A person sits at a prompt of this process, which may wait for hours: it is never ended because its main
  /// thread does not move.
  void set_prompt();
  bool is_prompt() const;
  ProgressReport report() const;
  /// The step, and the beginning of the phase into `phase`, for those who ask often: allocates nothing.
  static constexpr size_t kPhaseChars = 31;
  int64_t copy_place(std::array<char, kPhaseChars + 1>& phase) const;

 private:
  using Clock = std::chrono::steady_clock;
  mutable std::mutex mutex_;
  int64_t step_ = -1;
  bool is_prompt_ = false;
  std::string phase_ = "starting", collective_;
  Clock::time_point phase_begin_ = Clock::now(), collective_begin_ = Clock::now();
  Clock::time_point wait_begin_;  // of the outermost collective
  CommTime comm_time_;
};

/// That of this process. The program and its engine have one each.
Progress& process_progress();

/// A process is in a phase while it lives.
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

/// A process is in a collective while it lives.
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
