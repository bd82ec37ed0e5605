// Records stretches of training as traces that Perfetto, chrome://tracing and TensorBoard open.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/json.h"
#include "trainer/metrics/reporter.h"
#include "trainer/profiler/config.h"
#include "trainer/profiler/range.h"

namespace tycho {

/// Owned by the trainer's thread, whose work it records (and what a GPU does for it). One trace at a time in
/// a process. What goes wrong while it records by itself is a warning of the run: training goes on.
class Profiler {
 public:
  struct Place {
    std::string folder;  // made with the first trace
    int rank = 0;
    bool gpu = false;
  };
  /// `reporter` outlives it.
  Profiler(const ProfileConfig& config, Place place, Reporter& reporter);
  /// A trace that is not whole is dropped.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Around every step of the run, by its number from 1: records those of the schedule, and those that were
  /// ordered.
  void begin_step(int64_t step);
  void end_step();
  /// Writes what is being recorded, should the run end there.
  void end();

  /// Records the next so many steps. Throws Error (kRecipe) while a trace is recorded.
  void order(int64_t num_steps);

  /// From here to finish, whatever the steps. Throws Error (kUsage) while a trace is recorded.
  void start();
  /// {path, ranges: [{name, calls, seconds}]}, those that took longest first. `last_step`: for its name.
  Json finish(int64_t last_step);

  /// The schedule's phase for the next step: "wait", "warmup" or "active"; "off" when nothing will be
  /// recorded here.
  std::string phase() const;
  /// The path of the trace that was written last; "" before the first.
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
  /// Runs `body`; what it throws is a warning, and nothing is recorded any more.
  template <class Body>
  void carefully(Body&& body);

  ProfileConfig config_;
  Place place_;
  Reporter& reporter_;
  bool records_here_;
  bool broken_ = false;
  int64_t steps_ = 0;    // of this process
  int64_t ordered_ = 0;  // steps that are still to be recorded
  int64_t step_ = 0, first_step_ = 0;
  bool prepared_ = false, recording_ = false, by_hand_ = false;
  std::string newest_trace_;
};

/// One step, from construction to destruction.
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
