// The learning rate over time.
#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainer/base/error.h"

namespace tycho {
namespace {

double decay(DecayShape shape, double p) {
  p = std::clamp(p, 0.0, 1.0);
  switch (shape) {
    case DecayShape::kLinear: return 1.0 - p;
    case DecayShape::kSqrt: return 1.0 - std::sqrt(p);
    case DecayShape::kCosine: return 0.5 * (1.0 + std::cos(std::numbers::pi * p));
  }
  return 0.0;
}

}  // namespace

Schedule make_schedule(const TrainConfig& config, int64_t total_steps, int64_t num_samples) {
  Schedule schedule{.config = config.scheduler, .total_steps = total_steps};
  const Duration warmup = std::visit([](const auto& kind) { return kind.warmup; }, config.scheduler.value);
  schedule.warmup_steps = std::round(in_steps(warmup, config, total_steps, num_samples));
  if (config.scheduler.is<WsdConfig>())
    schedule.decay_steps =
        std::round(in_steps(config.scheduler.as<WsdConfig>().decay, config, total_steps, num_samples));
  const auto total = static_cast<double>(total_steps);
  if (schedule.warmup_steps + schedule.decay_steps > total)
    fail(ExitCode::kRecipe,
         "[scheduler] warmup of {} and decay of {} steps do not fit into a run of {} steps: shorten them or "
         "raise max_duration",
         schedule.warmup_steps, schedule.decay_steps, total_steps);
  return schedule;
}

double schedule_factor(const Schedule& schedule, int64_t steps_done) {
  const auto s = static_cast<double>(steps_done), total = static_cast<double>(schedule.total_steps);
  const double warmup = schedule.warmup_steps;
  if (s < warmup) return (s + 1.0) / warmup;
  const double p = total > warmup ? (s - warmup) / (total - warmup) : 1.0;
  const auto floored = [](double floor, double g) { return floor + (1.0 - floor) * g; };
  struct Factor {
    const Schedule& schedule;
    double s, p, total;
    decltype(floored)& with_floor;
    double operator()(const ConstantConfig&) const { return 1.0; }
    double operator()(const CosineConfig& c) const {
      return with_floor(c.floor, decay(DecayShape::kCosine, p));
    }
    double operator()(const LinearConfig& c) const {
      return with_floor(c.floor, decay(DecayShape::kLinear, p));
    }
    double operator()(const WsdConfig& c) const {
      const double begin = total - schedule.decay_steps;
      return s < begin
                 ? 1.0
                 : with_floor(c.floor, decay(c.shape, (s - begin) / std::max(1.0, schedule.decay_steps)));
    }
  };
  return std::visit(Factor{schedule, s, p, total, floored}, schedule.config.value);
}

}  // namespace tycho
