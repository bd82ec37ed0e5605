// The state of every trial, derived from the ledger's facts. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/sweep/definition.h"

namespace tycho {

enum class TrialState {
  kPlanned,   // no worker has begun it
  kClaimed,   // a worker has taken it
  kRunning,   // its process was started
  kRungDone,  // waits for the other trials of its rung
  kPaused,    // interrupted; a free worker continues it
  kLost,      // its worker died; a free worker continues it
  kFinished,
  kFailed,
  kStopped,  // by a rule, or because it diverged
  kDropped,  // by a person
};
const char* state_name(TrialState state);

/// The state of a trial when it was compared.
struct RungResult {
  int64_t step = 0, tokens = 0;
  std::optional<double> value;          // nullopt: worst of all
  std::map<std::string, double> evals;  // losses of the newest evaluations, "eval.loss", "eval.NAME.loss"
};

struct Trial {
  TrialPlan plan;
  int64_t number = 0;        // from 1, in the order of the plan; the number that users see
  bool in_plan = true;       // part of the current definition
  std::string finalist;      // the trial that this one repeats with another seed; "" for none
  bool is_repeated = false;  // some other trial repeats this one
  TrialState state = TrialState::kPlanned;
  int64_t claim = 0;  // number of the newest claim
  int64_t rung = 0;   // the rung that it trains to, or reached last
  std::map<int64_t, RungResult> rungs;
  RungResult last;
  double wall_s = 0;
  int64_t retries = 0, losses = 0;
  bool halved = false;      // continues with half the micro-batch
  int64_t micro_batch = 0;  // sequences, when halved
  std::string host, note;
  int64_t exit_code = 0;

  bool is_open()
      const;  // true when a worker is to train it, now or later; false for one that waits at a rung
  bool is_working() const { return state == TrialState::kClaimed || state == TrialState::kRunning; }
  bool has_value() const { return last.value.has_value(); }
};

/// Derives trials from facts. A fact may be applied twice. Facts of a claim that has a successor are ignored,
/// because their writer was considered dead.
class Board {
 public:
  /// Resets to the board of a sweep without facts.
  void clear() { *this = Board(); }
  /// Applies a fact. Throws Error (kUnusable) for a definition that cannot be read.
  void apply(const Json& fact, const std::string& sweep_dir);

  bool has_definition() const { return !definition_hash_.empty(); }
  const std::string& definition_hash() const { return definition_hash_; }
  const SweepDefinition& definition() const { return definition_; }
  bool is_paused() const { return paused_; }
  /// Returns the newest Slurm job of the sweep's tasks; "" for none.
  const std::string& job() const { return job_; }

  const std::vector<Trial>& trials() const { return trials_; }
  /// Returns a trial by id or by number; nullptr when there is none.
  const Trial* find(const std::string& id_or_number) const;
  /// Returns the folder of a trial's run.
  static std::string run_dir(const std::string& sweep_dir, const Trial& trial);

  /// Sets the present result of a running trial.
  void show_progress(const std::string& id, const RungResult& result) { trial_of(id).last = result; }

  /// Returns facts that make the same board, for a compacted ledger.
  std::vector<Json> facts() const;

 private:
  Trial& trial_of(const std::string& id);
  void apply_definition(const std::string& hash, const std::string& sweep_dir);
  void apply_trial(const Json& fact);
  void apply_claim(Trial& trial, const Json& fact);
  void apply_end(Trial& trial, const Json& fact);

  std::string definition_hash_, job_;
  SweepDefinition definition_;
  std::vector<std::string> definitions_;  // all definitions so far, oldest first
  std::vector<Trial> trials_;
  std::map<std::string, size_t> index_;
  bool paused_ = false;
};

/// Make the facts that workers write.
Json claim_fact(const Trial& trial, int64_t claim, int64_t rung, const std::string& host, int64_t pid);
Json running_fact(const Trial& trial, int64_t claim);
/// The end of a claim.
struct TrialEnd {
  TrialState state = TrialState::kFinished;
  RungResult result;
  double wall_s = 0;
  int64_t exit_code = 0;
  std::string note;
  int64_t retries = 0, losses = 0;
  int64_t micro_batch = 0;  // 0: not halved
};
Json end_fact(const Trial& trial, int64_t claim, int64_t rung, const TrialEnd& end);
/// Makes the fact of a trial that is in no definition: a finalist with another seed.
Json trial_fact(const TrialPlan& plan, const std::string& finalist);

}  // namespace tycho
