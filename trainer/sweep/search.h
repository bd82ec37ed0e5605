// Chooses the next task of a free worker: grids, random points, successive halving, repetitions of the best.
// Torch-free.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/base/goal.h"
#include "trainer/sweep/board.h"
#include "trainer/sweep/definition.h"

namespace tycho {

struct Task {
  std::string trial;
  int64_t rung = 0;
  int64_t claim = 0;  // number of the claim to take
  std::string until;  // a duration; "" for the end of the run
};

/// Returns true when `a` is better; no value is worst.
bool is_better(const std::optional<double>& a, const std::optional<double>& b, Goal goal);

/// Returns trials from best to worst: first by the rung reached, then by value, then by number. Leaves out
/// repetitions and trials that never had a value.
std::vector<const Trial*> ranking(const Board& board);

/// Returns the next task, or nullopt. Unfinished trials come first, then promotions from the highest rung
/// down, then new trials; those in `passed_over` are left out, and those that failed on `host` come last.
/// Asynchronous: no rung waits until it is full. One board gives nothing out twice; two boards may differ,
/// and the claim decides.
std::optional<Task> next_task(const Board& board, const std::string& host,
                              const std::set<std::string>& passed_over = {});

/// Returns true when no trial of the search is open and none will be promoted.
bool search_is_settled(const Board& board);
/// Returns the finalists with each of the seeds, when the search is settled, without those that the board
/// already has. `own_seed` is the recipe's own.
std::vector<std::pair<TrialPlan, std::string>> missing_repetitions(const Board& board, int64_t own_seed);

/// The spread of a trial's repetitions.
struct SeedNoise {
  int64_t runs = 0;
  double mean = 0, std = 0;  // std of a single run
};
/// Returns the spread of a trial and its repetitions. std is meaningless for runs < 2.
SeedNoise seed_noise(const Board& board, const Trial& trial);
/// Returns one sentence on whether the best trial beats the second by more than seeds do; "" without a
/// second.
std::string verdict_on_winner(const Board& board);

}  // namespace tycho
