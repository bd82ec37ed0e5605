// One run with one fault: what is done to it, and what must be true afterwards.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tycho::faults {

/// A moment of a run, named by a call of the file system that happens then.
struct Moment {
  const char* name;
  const char* call;
  const char* path;     // a part of it
  int64_t max_nth;      // the fault strikes at the first to this call of its kind
  bool any_rank;        // else rank 0 alone does this
  bool before_meeting;  // other ranks cannot know yet that the world is broken
  std::set<int> codes_of_file_faults;
};
const std::vector<Moment>& moments();

/// "kill", "term", "int", "usr1", "enospc", "eio", "stop" (SIGSTOP; the others must notice) and "stop, term"
/// (SIGSTOP, then SIGTERM to the launcher).
struct Trial {
  int64_t number = 0;
  int num_ranks = 1;
  int struck_rank = 0;
  bool launched = false;  // by tycho launch, else each rank by itself
  std::string kind;
  Moment moment;
  int64_t nth = 1;

  std::string describe() const;
};

struct Place {
  std::string tycho, shim;       // programs
  std::filesystem::path folder;  // with x.lua and data
  double limit_s = 60;           // a run that takes longer hangs
  int64_t steps_per_trial = 25, total_steps = 200;
};

struct TrialResult {
  std::string problem;  // "" when everything held
  bool has_struck = false;
  std::optional<double> ended_s;  // from the fault until the last process had ended, where it ended the run
  bool is_finished = false;       // the run has come to its end
};

/// Runs a trial in place.folder/run-NAME, on whatever earlier ones left there.
TrialResult run_trial(const Trial& trial, const Place& place, const std::string& run);

/// Trains undisturbed to the end. Returns what is wrong, or "".
std::string run_undisturbed(const Place& place, int num_ranks, const std::string& run);
/// The weights at the end of a run; "" when there are none.
std::string final_weights(const Place& place, const std::string& run);

}  // namespace tycho::faults
