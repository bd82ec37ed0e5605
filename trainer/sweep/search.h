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
  int64_t claim = 0;  // the number to take it by
  std::string until;  // a duration; "" for the end of the run
};

/// True when `a` is the better one; a trial without a value is worst.
bool is_better(const std::optional<double>& a, const std::optional<double>& b, Goal goal);

/// Trials from best to worst: those that came further up the rungs first, then by value, then by number.
/// Repetitions and trials that never had a value are left out.
std::vector<const Trial*> ranking(const Board& board);

/// The next task, or nothing. Unfinished trials come first, then promotions from the highest rung down, then
/// new trials; those in `passed_over` are left out, and those that failed on `host` come last. Asynchronous:
/// no rung waits until it is full. Nothing is given out twice by one board; two boards may differ, and the
/// claim decides.
std::optional<Task> next_task(const Board& board, const std::string& host,
                              const std::set<std::string>& passed_over = {});

/// True when no trial of the search is open and none will be promoted.
bool search_is_settled(const Board& board);
/// Finalists with each of the seeds, when the search is settled; what the board has already is left out.
/// `own_seed`: what the recipe runs with by itself.
std::vector<std::pair<TrialPlan, std::string>> missing_repetitions(const Board& board, int64_t own_seed);

/// The spread of a trial's repetitions.
struct SeedNoise {
  int64_t runs = 0;
  double mean = 0, std = 0;  // std of a single run
};
/// Of a trial and its repetitions; runs < 2 says nothing of std.
SeedNoise seed_noise(const Board& board, const Trial& trial);
/// One sentence on whether the best trial beats the second by more than seeds do; "" without a second.
std::string verdict_on_winner(const Board& board);

}  // namespace tycho
