// Counts steps in a row.
#include "trainer/state/loss_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/metrics/format.h"

namespace tycho {
namespace {

constexpr const char* kAdvice =
    "Lower optimizer.lr, lengthen scheduler.t_warmup or tighten clip.norm, and start from a checkpoint "
    "before it";

}  // namespace

LossWatch::LossWatch(int64_t vocab_size) : guess_(std::log(static_cast<double>(vocab_size))) {}

std::string LossWatch::step(double loss, double grad_norm, double lr) {
  if (!std::isfinite(loss) || !std::isfinite(grad_norm)) return "";
  const bool is_rising = lr > last_lr_;
  last_loss_ = loss, last_lr_ = lr;
  if (num_started_ < kStartSteps) {
    if (num_started_ == 0) most_ = std::min(std::max(2 * loss, 1.0), std::max(loss, guess_));
    highest_ = num_started_ == 0 ? loss : std::max(highest_, std::min(loss, most_));
    ++num_started_;
  } else {
    above_ = loss > (is_rising ? 2 : 1) * highest_ ? above_ + 1 : 0;
  }
  const std::string warning = gradient_warning(loss, grad_norm);
  return warning.empty() ? loss_warning(kLossSteps) : warning;
}

std::string LossWatch::end() { return loss_warning(kLateSteps); }

void LossWatch::restart() { num_started_ = above_ = 0; }

std::string LossWatch::loss_warning(int64_t steps) {
  if (told_of_loss_ || above_ < steps) return "";
  told_of_loss_ = true;
  return fmt::format(
      "the loss has stayed above its start for {} steps: the highest of the first {} was {}, now it is {}. "
      "The "
      "model may be learning nothing. {}",
      above_, kStartSteps, metric_text(highest_), metric_text(last_loss_), kAdvice);
}

std::string LossWatch::gradient_warning(double loss, double grad_norm) {
  if (first_norm_ == 0) first_norm_ = grad_norm;
  const bool has_vanished = loss > 0 && grad_norm <= kVanished * first_norm_ * -std::expm1(-loss);
  vanished_ = has_vanished ? vanished_ + 1 : 0;
  if (told_of_gradient_ || vanished_ < kGradSteps) return "";
  told_of_gradient_ = true;
  return fmt::format(
      "the gradient has vanished: its norm was {} at first and is {} now, at a loss of {}. The model learns "
      "nothing any more. {}",
      short_text(first_norm_), short_text(grad_norm), metric_text(loss), kAdvice);
}

}  // namespace tycho
