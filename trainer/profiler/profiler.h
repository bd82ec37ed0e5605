// Records spans of training as traces that Perfetto, chrome://tracing and TensorBoard open.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/json.h"
#include "trainer/metrics/reporter.h"
#include "trainer/profiler/range.h"
#include "trainer/recipe/profiler.h"

namespace tycho {

/// Records the work of the trainer's thread, which owns it, and of a GPU for it. One trace at a time in a
/// process. A failure of a scheduled recording is a warning of the run, which continues.
class Profiler {
 public:
  struct Place {
    std::string folder;  // created with the first trace
    int rank = 0;
    bool gpu = false;
  };
  /// `reporter` must outlive it.
  Profiler(const ProfileConfig& config, Place place, Reporter& reporter);
  /// Drops an incomplete trace.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Called around every step of the run, by its number from 1. Record the steps of the schedule and ordered
  /// steps.
  void begin_step(int64_t step);
  void end_step();
  /// Writes the trace in progress, if the run ends there.
  void end();

  /// Records the next `num_steps` steps. Throws Error (kRecipe) while a trace is recorded.
  void order(int64_t num_steps);

  /// Records until finish(), independent of steps. Throws Error (kUsage) while a trace is recorded.
  void start();
  /// Ends the recording. Returns {path, ranges: [{name, calls, seconds}]}, longest first. `last_step` is part
  /// of the file name.
  Json finish(int64_t last_step);

  /// Returns the schedule's phase for the next step: "wait", "warmup" or "active"; "off" when nothing will be
  /// recorded on this rank.
  std::string phase() const;
  /// Returns the path of the newest trace; "" before the first.
  const std::string& newest_trace() const { return newest_trace_; }

 private:
  enum class Phase { kNothing, kWarmUp, kRecord, kRecordLast };
  Phase scheduled() const;
  int64_t cycle() const;
  bool has_cycles_left() const;
  void prepare();
  void open(int64_t first_step);
  Json close(int64_t last_step, bool with_ranges);
  void drop();
  /// Runs `body`. An exception becomes a warning and ends recording.
  template <class Body>
  void carefully(Body&& body);

  ProfileConfig config_;
  Place place_;
  Reporter& reporter_;
  bool records_here_;
  bool broken_ = false;
  int64_t steps_ = 0;    // steps of this process
  int64_t ordered_ = 0;  // steps left to record
  int64_t step_ = 0, first_step_ = 0;
  bool prepared_ = false, recording_ = false, by_hand_ = false;
  std::string newest_trace_;
};

/// Profiles one step during its lifetime.
class ProfiledStep {
 public:
  ProfiledStep(Profiler& profiler, int64_t step) : profiler_(profiler) {
    profiler_.begin_step(step);
    range_.emplace("ProfilerStep#", step);  // the name that TensorBoard finds steps by
  }
  ~ProfiledStep() {
    range_.reset();
    profiler_.end_step();
  }
  ProfiledStep(const ProfiledStep&) = delete;
  ProfiledStep& operator=(const ProfiledStep&) = delete;

 private:
  Profiler& profiler_;
  std::optional<Range> range_;
};

}  // namespace tycho
