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
  kPlanned,   // nobody has begun it
  kClaimed,   // somebody has taken it
  kRunning,   // its process was started
  kRungDone,  // it waits for the others of its rung
  kPaused,    // left on the way; whoever is free goes on
  kLost,      // its worker died; whoever is free goes on
  kFinished,
  kFailed,
  kStopped,  // by a rule, or diverged
  kDropped,  // by a person
};
const char* state_name(TrialState state);

/// What a trial had reached when it was compared.
struct RungResult {
  int64_t step = 0, tokens = 0;
  std::optional<double> value;          // none: worst of all
  std::map<std::string, double> evals;  // losses of the newest evaluations, "eval.loss", "eval.NAME.loss"
};

struct Trial {
  TrialPlan plan;
  int64_t number = 0;        // from 1, in the order of the plan: how people call it
  bool in_plan = true;       // of the definition that holds now
  std::string finalist;      // the trial that this one repeats with another seed; "" for none
  bool is_repeated = false;  // some other trial repeats this one
  TrialState state = TrialState::kPlanned;
  int64_t claim = 0;  // number of the newest claim
  int64_t rung = 0;   // the one that it trains to, or came to last
  std::map<int64_t, RungResult> rungs;
  RungResult last;
  double wall_s = 0;
  int64_t retries = 0, losses = 0;
  bool halved = false;      // goes on with half the micro-batch
  int64_t micro_batch = 0;  // sequences, when halved
  std::string host, note;
  int64_t exit_code = 0;

  bool is_open() const;  // somebody is to work on it, now or later; not one that waits at a rung
  bool is_working() const { return state == TrialState::kClaimed || state == TrialState::kRunning; }
  bool has_value() const { return last.value.has_value(); }
};

/// Facts in, trials out. A fact may come twice. Facts of a claim that has a successor are ignored: their
/// writer was thought dead.
class Board {
 public:
  /// Makes the board of a sweep that has no facts yet.
  void clear() { *this = Board(); }
  /// Throws Error (kUnusable) for a definition that cannot be read.
  void apply(const Json& fact, const std::string& sweep_dir);

  bool has_definition() const { return !definition_hash_.empty(); }
  const std::string& definition_hash() const { return definition_hash_; }
  const SweepDefinition& definition() const { return definition_; }
  bool is_paused() const { return paused_; }
  /// The newest job that tasks were submitted with; "" for none.
  const std::string& job() const { return job_; }

  const std::vector<Trial>& trials() const { return trials_; }
  /// By id, or by number; nullptr for none.
  const Trial* find(const std::string& id_or_number) const;
  /// The folder of a trial's run.
  static std::string run_dir(const std::string& sweep_dir, const Trial& trial);

  /// Shows what a trial that is being worked on has reached by now.
  void show_progress(const std::string& id, const RungResult& result) { trial_of(id).last = result; }

  /// Facts that make the same board: what a compaction keeps.
  std::vector<Json> facts() const;

 private:
  Trial& trial_of(const std::string& id);
  void apply_definition(const std::string& hash, const std::string& sweep_dir);
  void apply_trial(const Json& fact);
  void apply_claim(Trial& trial, const Json& fact);
  void apply_end(Trial& trial, const Json& fact);

  std::string definition_hash_, job_;
  SweepDefinition definition_;
  std::vector<std::string> definitions_;  // all that there were, oldest first
  std::vector<Trial> trials_;
  std::map<std::string, size_t> index_;
  bool paused_ = false;
};

/// The facts that workers write.
Json claim_fact(const Trial& trial, int64_t claim, int64_t rung, const std::string& host, int64_t pid);
Json running_fact(const Trial& trial, int64_t claim);
/// How a claim ended.
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
/// A trial that is in no definition: a finalist with another seed.
Json trial_fact(const TrialPlan& plan, const std::string& finalist);

}  // namespace tycho
