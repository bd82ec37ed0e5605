// Notices training that computes without learning: losses that stay above their start, gradients that vanish.
// Torch-free.
#pragma once
#include <cstdint>
#include <string>

namespace tycho {

/// Watches the steps of one process on one data set. Gives each of its two warnings at most once.
///
/// The loss: every one of kLossSteps consecutive steps is above the highest of the first kStartSteps. If
/// nothing were learned and nothing lost, so that any order of losses were equally likely, kLateSteps such
/// losses alone would have the probability 1 / binomial(30, 10), three in a hundred million. In case training
/// diverges at once, the limit is at most twice the first loss (at least 1), and at most the larger of the
/// loss of a guess among all tokens and the first loss. While the learning rate rises, as in a warm-up, a
/// healthy loss may rise for a while, and only losses above twice the limit count.
///
/// The gradient: its norm is below kVanished of the first step's for kGradSteps consecutive steps, although
/// there is a loss to lower. When a model is right, both vanish together: the gradient of a cross-entropy L
/// with respect to the logits is at least 1 - exp(-L), so the limit shrinks with that.
///
/// Steps whose numbers are not finite belong to the guard and count for neither.
class LossWatch {
 public:
  static constexpr int64_t kStartSteps = 10, kLossSteps = 100, kLateSteps = 20, kGradSteps = 10;
  static constexpr double kVanished = 1e-6;

  explicit LossWatch(int64_t vocab_size);
  /// Adds a step. Returns the warning that it completes, or "".
  std::string step(double loss, double grad_norm, double lr);
  /// Returns the warning of a run that ends before kLossSteps, for which kLateSteps suffice; or "".
  std::string end();
  /// Starts again, because other data have other losses.
  void restart();

 private:
  std::string loss_warning(int64_t steps);
  std::string gradient_warning(double loss, double grad_norm);

  double guess_;  // the loss of a guess
  int64_t num_started_ = 0, above_ = 0, vanished_ = 0;
  double highest_ = 0, most_ = 0, first_norm_ = 0, last_loss_ = 0, last_lr_ = 0;
  bool told_of_loss_ = false, told_of_gradient_ = false;
};

}  // namespace tycho
