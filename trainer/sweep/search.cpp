// Decides from the board alone, so that any worker may.
#include "trainer/sweep/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tycho {
namespace {

bool is_search_trial(const Trial& trial) { return trial.in_plan && trial.finalist.empty(); }

const AshaSearch* asha_of(const Board& board) {
  return std::get_if<AshaSearch>(&board.definition().config.search.value);
}

int64_t top_rung(const Board& board) {
  const AshaSearch* asha = asha_of(board);
  return asha ? static_cast<int64_t>(asha->rungs.size()) - 1 : 0;
}

std::string until_of(const Board& board, int64_t rung) {
  const AshaSearch* asha = asha_of(board);
  return asha ? asha->rungs.at(static_cast<size_t>(rung)).str() : "";
}

/// The result of a trial at a rung. A trial that ended before it counts as the worst there.
struct Standing {
  const Trial* trial;
  std::optional<double> value;
};

bool ended_below(const Trial& trial, int64_t rung) {
  const bool ended = trial.state == TrialState::kFailed || trial.state == TrialState::kStopped;
  return ended && trial.rung == rung;
}

std::vector<Standing> standings(const Board& board, int64_t rung) {
  std::vector<Standing> list;
  for (const Trial& trial : board.trials()) {
    if (!is_search_trial(trial)) continue;
    const auto found = trial.rungs.find(rung);
    if (found != trial.rungs.end())
      list.push_back({&trial, found->second.value});
    else if (ended_below(trial, rung))
      list.push_back({&trial, std::nullopt});
  }
  const Goal goal = board.definition().config.metric.goal;
  std::sort(list.begin(), list.end(), [&](const Standing& a, const Standing& b) {
    if (is_better(a.value, b.value, goal)) return true;
    return !is_better(b.value, a.value, goal) && a.trial->number < b.trial->number;
  });
  return list;
}

/// Returns true while further results can arrive at this rung.
bool may_grow(const Board& board, int64_t rung) {
  const auto& trials = board.trials();
  const auto below = [&](const Trial& trial) {
    return is_search_trial(trial) && trial.is_open() && trial.rung <= rung && !trial.rungs.contains(rung);
  };
  return std::any_of(trials.begin(), trials.end(), below);
}

/// Returns the best trial of a rung that is among its best 1/eta and was not promoted yet. A complete rung
/// promotes at least one.
const Trial* promotable(const Board& board, int64_t rung, double eta, bool lower_is_settled,
                        const std::set<std::string>& passed_over) {
  const std::vector<Standing> list = standings(board, rung);
  auto count = static_cast<size_t>(std::floor(static_cast<double>(list.size()) / eta));
  if (count == 0 && !list.empty() && lower_is_settled && !may_grow(board, rung)) count = 1;
  for (size_t i = 0; i < std::min(count, list.size()); ++i) {
    const Trial& trial = *list[i].trial;
    if (!list[i].value) break;
    if (trial.state == TrialState::kRungDone && trial.rung == rung && !passed_over.contains(trial.plan.id))
      return &trial;
  }
  return nullptr;
}

struct Promotion {
  const Trial* trial = nullptr;
  int64_t rung = 0;
};

/// Searches from the highest rung down. A rung is complete when nothing below it can still be promoted into
/// it.
Promotion find_promotion(const Board& board, const std::set<std::string>& passed_over) {
  const AshaSearch* asha = asha_of(board);
  if (asha == nullptr) return {};
  std::vector<Promotion> found;
  bool lower_is_settled = true;
  for (int64_t rung = 0; rung < top_rung(board); ++rung) {
    const Trial* trial = promotable(board, rung, asha->eta, lower_is_settled, passed_over);
    if (trial) found.push_back({trial, rung + 1});
    lower_is_settled = lower_is_settled && trial == nullptr && !may_grow(board, rung);
  }
  return found.empty() ? Promotion{} : found.back();
}

bool is_left_over(const Trial& trial) {
  return trial.in_plan && (trial.state == TrialState::kPaused || trial.state == TrialState::kLost);
}

/// Returns the first open trial: begun ones before new ones, and preferably one that did not fail on this
/// host.
const Trial* first_open(const Board& board, bool begun, bool avoided, const std::string& host,
                        const std::set<std::string>& passed_over) {
  for (const Trial& trial : board.trials()) {
    const bool fits = begun ? is_left_over(trial) : trial.in_plan && trial.state == TrialState::kPlanned;
    const bool failed_here = trial.retries > 0 && trial.host == host;
    if (fits && failed_here == avoided && !passed_over.contains(trial.plan.id)) return &trial;
  }
  return nullptr;
}

Task task_for(const Board& board, const Trial& trial, int64_t rung) {
  return {trial.plan.id, rung, trial.claim + 1, trial.finalist.empty() ? until_of(board, rung) : [&] {
            return until_of(board, top_rung(board));
          }()};
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

}  // namespace

bool is_better(const std::optional<double>& a, const std::optional<double>& b, Goal goal) {
  const auto usable = [](const std::optional<double>& x) { return x && std::isfinite(*x); };
  if (!usable(a) || !usable(b)) return usable(a) && !usable(b);
  return goal == Goal::kMin ? *a < *b : *a > *b;
}

std::vector<const Trial*> ranking(const Board& board) {
  std::vector<const Trial*> list;
  for (const Trial& trial : board.trials())
    if (trial.finalist.empty() && trial.has_value() && trial.state != TrialState::kDropped &&
        trial.state != TrialState::kFailed)
      list.push_back(&trial);
  const Goal goal = board.definition().config.metric.goal;
  const auto height = [](const Trial& trial) {
    return trial.rungs.empty() ? -1 : trial.rungs.rbegin()->first;
  };
  std::sort(list.begin(), list.end(), [&](const Trial* a, const Trial* b) {
    if (height(*a) != height(*b)) return height(*a) > height(*b);
    if (is_better(a->last.value, b->last.value, goal)) return true;
    return !is_better(b->last.value, a->last.value, goal) && a->number < b->number;
  });
  return list;
}

std::optional<Task> next_task(const Board& board, const std::string& host,
                              const std::set<std::string>& passed_over) {
  const auto open = [&](bool begun, bool avoided) -> std::optional<Task> {
    const Trial* trial = first_open(board, begun, avoided, host, passed_over);
    if (trial == nullptr) return {};
    return task_for(board, *trial, trial->rung);
  };
  if (auto task = open(true, false)) return task;
  if (const Promotion next = find_promotion(board, passed_over); next.trial)
    return task_for(board, *next.trial, next.rung);
  if (auto task = open(false, false)) return task;
  return open(true, true);
}

bool search_is_settled(const Board& board) {
  const auto& trials = board.trials();
  const bool any_open = std::any_of(trials.begin(), trials.end(), [](const Trial& trial) {
    return is_search_trial(trial) && trial.is_open();
  });
  return !any_open && find_promotion(board, {}).trial == nullptr;
}

std::vector<std::pair<TrialPlan, std::string>> missing_repetitions(const Board& board, int64_t own_seed) {
  const SweepConfig& config = board.definition().config;
  std::vector<std::pair<TrialPlan, std::string>> missing;
  if (config.seeds.empty() || !search_is_settled(board)) return missing;
  const std::string recipe_hash = recipe_identity_hash(board.definition().recipe_sources, config.pins);
  const std::vector<const Trial*> best = ranking(board);
  for (size_t i = 0; i < best.size() && i < static_cast<size_t>(config.finalists); ++i) {
    for (const int64_t seed : config.seeds) {
      TrialPlan plan = best[i]->plan;
      if (seed == own_seed) continue;  // the finalist itself
      plan.pins.push_back(fmt::format("seed={}", seed));
      std::sort(plan.pins.begin(), plan.pins.end());
      plan.id = trial_id(plan.pins, recipe_hash);
      if (board.find(plan.id) == nullptr) missing.emplace_back(plan, best[i]->plan.id);
    }
  }
  return missing;
}

SeedNoise seed_noise(const Board& board, const Trial& trial) {
  std::vector<double> values;
  if (trial.has_value()) values.push_back(*trial.last.value);
  for (const Trial& other : board.trials())
    if (other.finalist == trial.plan.id && other.state == TrialState::kFinished && other.has_value())
      values.push_back(*other.last.value);
  SeedNoise noise{.runs = static_cast<int64_t>(values.size())};
  if (values.empty()) return noise;
  noise.mean = mean_of(values);
  double squares = 0;
  for (const double x : values) squares += (x - noise.mean) * (x - noise.mean);
  if (values.size() > 1) noise.std = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return noise;
}

std::string verdict_on_winner(const Board& board) {
  const std::vector<const Trial*> best = ranking(board);
  if (best.size() < 2) return "";
  const SeedNoise first = seed_noise(board, *best[0]), second = seed_noise(board, *best[1]);
  const std::string names = fmt::format("trial {} and trial {}", best[0]->number, best[1]->number);
  if (first.runs < 2 || second.runs < 2) {
    return fmt::format(
        "{} differ by {:.4g}; the variation between seeds is unknown: `tycho sweep set {} "
        "'seeds={{17,18,19}}'`",
        names, std::abs(*best[0]->last.value - *best[1]->last.value), board.definition().name);
  }
  const double difference = std::abs(first.mean - second.mean);
  const double sigma = std::sqrt((first.std * first.std + second.std * second.std) / 2);
  const bool clear = difference > sigma;
  const bool reversed = is_better(second.mean, first.mean, board.definition().config.metric.goal);
  std::string text = fmt::format("{}: difference of means {:.4g} {} seed sigma {:.4g} ({} runs)", names,
                                 difference, clear ? ">" : "<", sigma, first.runs + second.runs);
  if (!clear) return text + ": no clear winner";
  return text + fmt::format(": trial {} wins", reversed ? best[1]->number : best[0]->number);
}

}  // namespace tycho
