// Converts durations to steps once, then evaluates factors; compat = composer has its own rounding.
#include "trainer/recipe/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Returns the unit of a schedule's own lengths, warm-up apart.
DurationUnit course_unit(const TrainConfig& config) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (requires { kind.t_max; })
          return kind.t_max.unit;
        else if constexpr (requires { kind.t_0; })
          return kind.t_0.unit;
        else if constexpr (requires { kind.step_size; })
          return kind.step_size.unit;
        else if constexpr (requires { kind.decay_period; })
          return kind.decay_period.unit;
        else if constexpr (requires { kind.milestones; })
          return kind.milestones.empty() ? DurationUnit::kFraction : kind.milestones.front().unit;
        else
          return DurationUnit::kFraction;
      },
      config.scheduler.value);
}

const WarmupConfig& warmup_of(const SchedulerConfig& config) {
  return std::visit([](const auto& kind) -> const WarmupConfig& { return kind; }, config.value);
}

bool is_composer(const SchedulerConfig& config) {
  return warmup_of(config).compat == ScheduleCompat::kComposer;
}

// What lengths become steps by.
struct Lengths {
  const TrainConfig& config;
  int64_t total_steps, num_samples;
  RunClock clock = {};
  DurationUnit unit = DurationUnit::kBatch;  // whose clock the schedule follows

  double lead(DurationUnit of) const { return clock_lead(of, config, clock); }

  /// Returns true when time is measured in tokens that differ from step to step; never for the table of a
  /// function.
  bool by_tokens(DurationUnit of) const {
    if (of == DurationUnit::kFraction) of = config.max_duration.unit;
    return config.step_tokens && of == DurationUnit::kToken;
  }
  bool course_by_tokens() const { return by_tokens(unit) && !config.scheduler.is<FnScheduleConfig>(); }

  /// Tokens that count as one step when time is measured in tokens.
  double tokens_per_step() const {
    return config.max_duration.unit == DurationUnit::kToken
               ? config.max_duration.value / static_cast<double>(total_steps)
               : config.step_tokens->mean();
  }

  /// Converts a point on the clock of `length`'s unit to the schedule's clock. Both are in steps of the
  /// present size; the part before the clock's start is spread evenly over the steps there.
  double place(const Duration& length, double at) const {
    const double own = lead(length.unit), main = lead(unit);
    const bool from_tokens = by_tokens(length.unit), to_tokens = course_by_tokens();
    if (own == main && from_tokens == to_tokens) return at;
    if (from_tokens) at = config.step_tokens->steps(at * tokens_per_step());
    const auto start = static_cast<double>(clock.step);
    const double step = at - own >= start ? at - own : at * start / (start + own);
    const double here = step >= start ? step + main : step * (start + main) / start;
    return to_tokens ? config.step_tokens->tokens(here) / tokens_per_step() : here;
  }

  double steps(const Duration& length) const {
    if (length.unit == DurationUnit::kToken && by_tokens(length.unit))
      return length.value / tokens_per_step();
    return in_steps(length, config, total_steps, num_samples);
  }

  double scaled(const Duration& length, double ratio) const {
    if (is_composer(config.scheduler)) return steps(as_composer_cuts(length, ratio));
    return steps(length) * (length.unit == DurationUnit::kFraction ? 1.0 : ratio);
  }

  // Composer keeps whole numbers of a unit: of batches for epochs, and of max_duration's unit for fractions.
  Duration as_composer_cuts(const Duration& length, double ratio) const {
    const Duration& run = config.max_duration;
    const double epoch = steps({1, DurationUnit::kEpoch});
    if (length.unit == DurationUnit::kFraction) {
      if (run.unit == DurationUnit::kEpoch)
        return {std::trunc(length.value * epoch * run.value), DurationUnit::kBatch};
      return {std::trunc(length.value * run.value), run.unit};
    }
    if (length.unit == DurationUnit::kEpoch)
      return {std::trunc(length.value * epoch * ratio), DurationUnit::kBatch};
    return {std::trunc(length.value * ratio), length.unit};
  }

  double whole(const Duration& length, double ratio) const {
    const double steps = scaled(length, ratio);
    return is_composer(config.scheduler) ? steps : std::round(steps);
  }
};

/// Returns the ends of the intervals, up to the first that is beyond the run or has no length. Composer's are
/// whole numbers of t_0's unit, others whole steps.
std::vector<double> restarts_of(const Lengths& lengths, const CosineRestartsConfig& config) {
  const double ratio = config.scale_schedule_ratio;
  const bool composer = is_composer(lengths.config.scheduler);
  const Duration first = composer
                             ? lengths.as_composer_cuts(config.t_0, ratio)
                             : Duration{std::round(lengths.scaled(config.t_0, ratio)), DurationUnit::kBatch};
  const double unit_steps = lengths.steps({1, first.unit}), total = static_cast<double>(lengths.total_steps);
  std::vector<double> ends = {first.value * unit_steps};
  double length = first.value, end = first.value;
  while (ends.back() <= total && length > 0) {
    length = composer ? std::trunc(length * config.t_mult) : std::round(length * config.t_mult);
    end += length;
    ends.push_back(end * unit_steps);
  }
  for (double& one : ends) one = lengths.place(config.t_0, one);
  return ends;
}

Schedule with_lengths(const Lengths& lengths) {
  const SchedulerConfig& scheduler = lengths.config.scheduler;
  const WarmupConfig& common = warmup_of(scheduler);
  const double ratio = common.scale_schedule_ratio, warmup_ratio = common.scale_warmup ? ratio : 1.0;
  Schedule schedule{.config = scheduler, .total_steps = lengths.total_steps};
  if (lengths.config.step_tokens) {
    schedule.step_tokens = lengths.config.step_tokens, schedule.tokens_per_step = lengths.tokens_per_step();
    schedule.by_tokens = lengths.course_by_tokens();
    schedule.warmup_by_tokens = lengths.by_tokens(common.t_warmup.unit);
  }
  schedule.warmup_length = lengths.whole(common.t_warmup, warmup_ratio);
  // Composer uses the unscaled length to decide whether warm-up is over, and the scaled one for its progress.
  schedule.warmup = is_composer(scheduler) ? lengths.whole(common.t_warmup, 1.0) : schedule.warmup_length;
  if (scheduler.is<InvSqrtConfig>() && is_composer(scheduler)) schedule.warmup_length = schedule.warmup;
  schedule.warmup = lengths.place(common.t_warmup, schedule.warmup);
  schedule.warmup_lead = lengths.lead(common.t_warmup.unit), schedule.lead = lengths.lead(lengths.unit);
  schedule.t_max = static_cast<double>(lengths.total_steps);
  std::visit(
      [&](const auto& kind) {
        if constexpr (requires { kind.t_max; }) schedule.t_max = lengths.whole(kind.t_max, ratio);
        if constexpr (requires { kind.t_decay; }) schedule.decay = lengths.whole(kind.t_decay, ratio);
        if constexpr (requires { kind.t_cooldown; })
          schedule.cooldown = lengths.whole(kind.t_cooldown, ratio);
        if constexpr (requires { kind.t_scale; }) schedule.scale = lengths.scaled(kind.t_scale, ratio);
        if constexpr (requires { kind.step_size; }) schedule.period = lengths.scaled(kind.step_size, ratio);
        if constexpr (requires { kind.decay_period; })
          schedule.period = lengths.scaled(kind.decay_period, ratio);
        if constexpr (requires { kind.t_0; }) schedule.restarts = restarts_of(lengths, kind);
        if constexpr (requires { kind.milestones; })
          for (const Duration& milestone : kind.milestones)
            schedule.milestones.push_back(lengths.place(milestone, lengths.whole(milestone, ratio)));
      },
      scheduler.value);
  return schedule;
}

double cosine(double p) { return 0.5 * (1.0 + std::cos(std::numbers::pi * p)); }

double decay(DecayType type, double p) {
  switch (type) {
    case DecayType::kLinear: return 1.0 - p;
    case DecayType::kSqrt: return 1.0 - std::sqrt(p);
    case DecayType::kCosine: return cosine(p);
  }
  return 0.0;
}

double above(double floor, double share) { return floor + (1.0 - floor) * share; }

// The factor at time t, after warm-up.
struct AfterWarmup {
  const Schedule& schedule;
  double t;

  double progress() const {
    const double length = schedule.t_max - schedule.warmup;
    if (length <= 0) return is_composer(schedule.config) ? 0.0 : 1.0;
    return std::min(1.0, (t - schedule.warmup) / length);
  }
  double operator()(const ConstantConfig& c) const { return c.alpha; }
  double operator()(const LinearConfig& c) const { return c.alpha_i + progress() * (c.alpha_f - c.alpha_i); }
  double operator()(const CosineConfig& c) const { return above(c.alpha_f, cosine(progress())); }
  double operator()(const PolynomialConfig& c) const {
    return above(c.alpha_f, std::pow(1.0 - progress(), c.power));
  }
  double operator()(const MultistepConfig& c) const {
    double factor = 1.0;
    for (const double milestone : schedule.milestones)
      if (t >= milestone) factor *= c.gamma;
    return factor;
  }
  // A share of a step is lost where a period is none of whole steps.
  double operator()(const StepConfig& c) const {
    return std::pow(c.gamma, std::floor(t / schedule.period + 1e-9));
  }
  double operator()(const ExponentialConfig& c) const { return std::pow(c.gamma, t / schedule.period); }
  double operator()(const CosineRestartsConfig& c) const {
    const auto end = std::upper_bound(schedule.restarts.begin(), schedule.restarts.end() - 1, t);
    const double begin = end == schedule.restarts.begin() ? 0.0 : *(end - 1);
    return above(c.alpha_f, cosine(std::min(1.0, (t - begin) / (*end - begin))));
  }
  double operator()(const InvSqrtConfig& c) const {
    const auto root = [&](double time) {
      return above(c.alpha_f_decay,
                   1.0 / std::sqrt((time - schedule.warmup + schedule.scale) / schedule.scale));
    };
    const double cooldown_start = std::max(schedule.warmup, schedule.t_max - schedule.cooldown);
    if (t < cooldown_start || schedule.cooldown == 0) return root(std::min(t, cooldown_start));
    const double p = std::min(1.0, (t - cooldown_start) / schedule.cooldown);
    return root(cooldown_start) + p * (c.alpha_f_cooldown - root(cooldown_start));
  }
  double operator()(const WsdConfig& c) const {
    const double begin = schedule.t_max - schedule.decay;
    if (t < begin) return 1.0;
    return above(c.alpha_f, decay(c.decay_type, std::min(1.0, (t - begin) / std::max(1.0, schedule.decay))));
  }
  double operator()(const FnScheduleConfig& c) const {
    if (!c.factors || c.factors->empty())
      fail(ExitCode::kRecipe, "[scheduler] the values of {} are missing: only a run of its recipe has them",
           c.name);
    return c.factors->at(std::min(static_cast<size_t>(t), c.factors->size() - 1));
  }
  // What it gives is multiplied in where it is asked: see DynamicSchedule.
  double operator()(const DynamicScheduleConfig&) const { return 1.0; }
};

double first_value(const SchedulerConfig& config) {
  if (config.is<ConstantConfig>()) return config.as<ConstantConfig>().alpha;
  if (config.is<FnScheduleConfig>() && config.as<FnScheduleConfig>().factors)
    return config.as<FnScheduleConfig>().factors->front();
  return config.is<LinearConfig>() ? config.as<LinearConfig>().alpha_i : 1.0;
}

/// Returns the time on a clock after `steps_done` steps.
double time_at(const Schedule& schedule, double lead, bool by_tokens, int64_t steps_done) {
  double t = static_cast<double>(steps_done) + lead;
  if (is_composer(schedule.config)) t = std::max(0.0, t - 1.0);
  return by_tokens ? schedule.step_tokens->tokens(t) / schedule.tokens_per_step : t;
}

}  // namespace

namespace {

/// Returns the unit in which Composer counts a length: batches for epochs, max_duration's unit for fractions.
DurationUnit composer_unit(const Duration& length, const Duration& run) {
  const DurationUnit unit = length.unit == DurationUnit::kFraction ? run.unit : length.unit;
  return unit == DurationUnit::kEpoch ? DurationUnit::kBatch : unit;
}

/// Reports lengths that Composer does not compare: t_warmup with t_max, and all of inv_sqrt's with
/// max_duration.
void check_composer_units(const TrainConfig& config, std::vector<ConfigProblem>& problems) {
  const Duration& run = config.max_duration;
  const auto refuse = [&](const char* path, const Duration& length, const std::string& other) {
    problems.push_back(
        {path, fmt::format("{} and {} have different units, which Composer rejects; use the same",
                           length.str(), other)});
  };
  const Duration& warmup = warmup_of(config.scheduler).t_warmup;
  if (const auto* root = std::get_if<InvSqrtConfig>(&config.scheduler.value)) {
    const std::pair<const char*, const Duration*> lengths[] = {{"scheduler.t_warmup", &warmup},
                                                               {"scheduler.t_scale", &root->t_scale},
                                                               {"scheduler.t_cooldown", &root->t_cooldown}};
    for (const auto& [path, length] : lengths)
      if (length->value > 0 && length->unit != run.unit) refuse(path, *length, "max_duration = " + run.str());
    return;
  }
  const auto* linear = std::get_if<LinearConfig>(&config.scheduler.value);
  const auto* cosine = std::get_if<CosineConfig>(&config.scheduler.value);
  const auto* polynomial = std::get_if<PolynomialConfig>(&config.scheduler.value);
  const bool ends = linear != nullptr || cosine != nullptr || polynomial != nullptr;
  if (warmup.value == 0 || (!ends && !config.scheduler.is<ConstantConfig>())) return;
  const Duration t_max = linear != nullptr       ? linear->t_max
                         : cosine != nullptr     ? cosine->t_max
                         : polynomial != nullptr ? polynomial->t_max
                                                 : Duration{1, DurationUnit::kFraction};
  if (composer_unit(warmup, run) != composer_unit(t_max, run))
    refuse("scheduler.t_warmup", warmup,
           t_max.unit == DurationUnit::kFraction ? "max_duration = " + run.str() : "t_max = " + t_max.str());
}

}  // namespace

std::vector<ScheduleLength> schedule_lengths(const SchedulerConfig& scheduler) {
  std::vector<ScheduleLength> lengths = {{"scheduler.t_warmup", warmup_of(scheduler).t_warmup}};
  if (scheduler.is<WsdConfig>()) lengths.push_back({"scheduler.t_decay", scheduler.as<WsdConfig>().t_decay});
  if (scheduler.is<InvSqrtConfig>())
    lengths.push_back({"scheduler.t_cooldown", scheduler.as<InvSqrtConfig>().t_cooldown});
  return lengths;
}

std::vector<ConfigProblem> schedule_problems(const TrainConfig& config, int64_t total_steps,
                                             int64_t num_samples) {
  const Schedule schedule = with_lengths({config, total_steps, num_samples, {}, course_unit(config)});
  const auto total = static_cast<double>(total_steps);
  std::vector<ConfigProblem> problems;
  if (config.scheduler.is<InvSqrtConfig>()) {
    const auto& c = config.scheduler.as<InvSqrtConfig>();
    if (c.alpha_f_decay < c.alpha_f_cooldown)
      problems.push_back(
          {"scheduler.alpha_f_cooldown",
           fmt::format("{} is above alpha_f_decay = {}, but the learning rate can only fall; lower it",
                       c.alpha_f_cooldown, c.alpha_f_decay)});
  }
  for (size_t i = 1; i < schedule.restarts.size(); ++i)
    if (schedule.restarts[i] <= schedule.restarts[i - 1])
      problems.push_back({"scheduler.t_mult", "makes intervals of length 0; make t_0 or t_mult larger"});
  if (!schedule.restarts.empty() && schedule.restarts[0] <= 0)
    problems.push_back({"scheduler.t_0", "is less than one step; make it longer"});
  if (is_composer(config.scheduler)) {
    check_composer_units(config, problems);
    // Composer cuts a warm-up that is too long; max_duration may end within the last step. Its schedules
    // without warm-up are others, which end where t_max says and hold alpha_f from there.
    const bool may_end =
        warmup_of(config.scheduler).t_warmup.value == 0 && !config.scheduler.is<InvSqrtConfig>();
    if (schedule.t_max <= total - 1 && !may_end)
      problems.push_back(
          {"scheduler.t_max",
           fmt::format(
               "ends after {:.6g} steps, and max_duration is {}; Composer rejects that after a warm-up. "
               "Set it to at least 1dur",
               schedule.t_max, total_steps)});
    return problems;
  }
  const double sum = schedule.warmup + schedule.decay + schedule.cooldown;
  const char* what = config.scheduler.is<WsdConfig>()       ? "t_warmup and t_decay take"
                     : config.scheduler.is<InvSqrtConfig>() ? "t_warmup and t_cooldown take"
                                                            : "takes";
  if (sum > total)
    problems.push_back({"scheduler.t_warmup",
                        fmt::format("{} {:.6g} steps, and max_duration is {}; shorten one or train longer",
                                    what, sum, total_steps)});
  else if (sum > schedule.t_max)
    problems.push_back(
        {"scheduler.t_max", fmt::format("is {:.6g} steps, and {} {:.6g}; make it longer", schedule.t_max,
                                        sum == schedule.warmup ? "t_warmup takes" : what, sum)});
  return problems;
}

Schedule make_schedule(const TrainConfig& config, int64_t total_steps, int64_t num_samples,
                       const RunClock& clock) {
  const std::vector<ConfigProblem> problems = schedule_problems(config, total_steps, num_samples);
  if (!problems.empty())
    fail(ExitCode::kRecipe, "[scheduler] {}: {}", problems.front().path, problems.front().message);
  return with_lengths({config, total_steps, num_samples, clock, course_unit(config)});
}

double schedule_factor(const Schedule& schedule, int64_t steps_done) {
  const ScheduleCompat compat = warmup_of(schedule.config).compat;
  const double warmup_time = time_at(schedule, schedule.warmup_lead, schedule.warmup_by_tokens, steps_done);
  const double t = time_at(schedule, schedule.lead, schedule.by_tokens, steps_done);
  if (t >= schedule.warmup) return std::visit(AfterWarmup{schedule, t}, schedule.config.value);
  const double in_warmup = warmup_time + (compat == ScheduleCompat::kNone ? 1.0 : 0.0);
  return first_value(schedule.config) * std::min(1.0, in_warmup / schedule.warmup_length);
}

}  // namespace tycho
