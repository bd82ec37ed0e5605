// Configuration of optimizers, parameter groups, clipping and the average of the weights.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/recipe/decay_mask.h"
#include "trainer/recipe/defined_optimizer.h"

namespace tycho {

// state_names() returns the names that a checkpoint uses for the state of a parameter, one fp32 number per
// element each, like torch.optim. hidden_matrix is true for a matrix of a block, neither embedding nor head.

/// Share of a weight that weight decay removes in a step: lr x weight_decay, or weight_decay x (lr / peak
/// lr).
enum class Decay { kTimesLr, kDecoupled };

/// Declares weight_decay and decay_mask; `decoupled_help` describes decoupled weight_decay.
template <Decay decay, class Visitor>
void decay_fields(Visitor& v, double& weight_decay, DecayMask& decay_mask, const char* decoupled_help) {
  if constexpr (decay == Decay::kDecoupled)
    v("weight_decay", weight_decay, decoupled_help, below(0, 1));
  else
    v("weight_decay", weight_decay, "Weight decay: each step removes lr x this share of a weight.",
      at_least(0));
  v("decay_mask", decay_mask, kDecayMaskHelp);
}

/// AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101), with the decay of torch.optim.AdamW or of Composer's
/// DecoupledAdamW.
template <Decay decay>
struct AdamWKind {
  static constexpr bool kDecoupled = decay == Decay::kDecoupled;
  static constexpr const char* kKind = kDecoupled ? "decoupled_adamw" : "adamw";
  static constexpr const char* kHelp =
      kDecoupled ? "AdamW; each step shrinks a weight by weight_decay x (lr / peak lr)."
                 : "AdamW; each step shrinks a weight by lr x weight_decay.";
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = kDecoupled ? 1e-5 : 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;

  std::vector<std::string> state_names(bool /*hidden_matrix*/) const { return {"exp_avg", "exp_avg_sq"}; }

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up.", positive, required);
    v("betas", betas, "Decay of the first and second moment.", below(0, 1));
    v("eps", eps, "Added to the square root of the second moment.", positive);
    decay_fields<decay>(
        v, weight_decay, decay_mask,
        "Weight decay: share of a weight that a step at the peak learning rate removes (adamw's "
        "weight_decay times lr).");
  }
};
using AdamWConfig = AdamWKind<Decay::kTimesLr>;
using DecoupledAdamWConfig = AdamWKind<Decay::kDecoupled>;

/// Lion (Chen et al. 2023, arXiv:2302.06675), with AdamW's decay or that of LLM Foundry's DecoupledLionW.
template <Decay decay>
struct LionKind {
  static constexpr bool kDecoupled = decay == Decay::kDecoupled;
  static constexpr const char* kKind = kDecoupled ? "decoupled_lionw" : "lion";
  static constexpr const char* kHelp =
      kDecoupled ? "Lion; each step shrinks a weight by weight_decay x (lr / peak lr)."
                 : "Lion: steps of constant size in the direction of the momentum's sign.";
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;

  std::vector<std::string> state_names(bool /*hidden_matrix*/) const { return {"exp_avg"}; }

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up; a third to a tenth of AdamW's.", positive, required);
    v("betas", betas, "Weight of the momentum in the step, and its decay.", below(0, 1));
    decay_fields<decay>(
        v, weight_decay, decay_mask,
        "Weight decay: share of a weight that a step at the peak learning rate removes (lion's "
        "weight_decay times lr).");
  }
};
using LionConfig = LionKind<Decay::kTimesLr>;
using DecoupledLionConfig = LionKind<Decay::kDecoupled>;

/// torch.optim.SGD with dampening 0.
struct SgdConfig {
  static constexpr const char* kKind = "sgd";
  static constexpr const char* kHelp = "Gradient descent with momentum.";
  double lr = 0.1;
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;

  std::vector<std::string> state_names(bool /*hidden_matrix*/) const {
    if (momentum == 0) return {};
    return {"momentum_buffer"};
  }

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up.", positive, required);
    v("momentum", momentum, "Momentum: share of the previous step that carries over; 0 keeps no state.",
      below(0, 1));
    v("nesterov", nesterov, "Nesterov momentum.");
    v("weight_decay", weight_decay, "L2 penalty: times the weight, added to its gradient.", at_least(0));
    v("decay_mask", decay_mask, kDecayMaskHelp);
  }
};

/// Factor of lr for a matrix of A rows and B columns.
enum class MuonScale { kOriginal, kMatchRmsAdamW };
constexpr EnumNames<MuonScale, 2> enum_names(MuonScale) {
  return {{{"original", MuonScale::kOriginal}, {"match_rms_adamw", MuonScale::kMatchRmsAdamW}}};
}

/// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), like torch.optim.Muon, for the matrices of
/// the blocks; AdamW for embeddings, head, norms and biases.
struct MuonConfig {
  static constexpr const char* kKind = "muon";
  static constexpr const char* kHelp = "Muon for the matrices of the blocks, AdamW for everything else.";
  double lr = 2e-2;
  double momentum = 0.95;
  bool nesterov = true;
  int64_t ns_steps = 5;
  MuonScale adjust_lr = MuonScale::kOriginal;
  double weight_decay = 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;
  std::optional<double> adamw_lr;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;

  bool updates_whole(const std::vector<int64_t>& /*shape*/, bool hidden_matrix) const {
    return hidden_matrix;
  }
  std::vector<std::string> state_names(bool hidden_matrix) const {
    if (hidden_matrix) return {"momentum_buffer"};
    return {"exp_avg", "exp_avg_sq"};
  }

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate of the matrices, after warm-up.", positive, required);
    v("momentum", momentum, "Decay of the mean of the gradients.", below(0, 1));
    v("nesterov", nesterov, "Nesterov momentum.");
    v("ns_steps", ns_steps, "Newton-Schulz iterations.", in_range(1, 20));
    v("adjust_lr", adjust_lr,
      "Scales lr for a matrix of A rows and B columns: original by sqrt(max(1, A / B)), match_rms_adamw by "
      "0.2 sqrt(max(A, B)), so that AdamW's lr fits.");
    v("weight_decay", weight_decay, "Weight decay: each step removes lr x this share of a weight.",
      at_least(0));
    v("decay_mask", decay_mask, kDecayMaskHelp);
    v("adamw_lr", adamw_lr, "Peak learning rate of what AdamW updates. Default: lr.", positive);
    v("betas", betas, "AdamW's decay of the first and second moment.", below(0, 1));
    v("eps", eps, "AdamW's epsilon, added to the square root of the second moment.", positive);
  }
};

struct OptimizerConfig : OneOf<AdamWConfig, DecoupledAdamWConfig, LionConfig, DecoupledLionConfig, SgdConfig,
                               MuonConfig, DefinedOptimizerConfig> {
  static constexpr const char* kNamespace = "optim";
  const char* kind() const { return kind_name(value); }
};

/// Returns the betas of an optimizer that has two. A defined one has them if its values do.
std::optional<std::array<double, 2>> betas_of(const OptimizerConfig& optimizer);
/// Requires an optimizer that has betas.
void set_betas(OptimizerConfig& optimizer, const std::array<double, 2>& betas);

/// Parameter groups. The first group that matches a name wins.
struct ParamGroupConfig {
  std::string match;
  bool freeze = false;
  std::optional<double> lr;
  std::optional<double> lr_scale;
  std::optional<double> weight_decay;
  std::optional<std::array<double, 2>> betas;

  template <class Visitor>
  void fields(Visitor& v) {
    v("match", match, "Regular expression to search for in the parameter's Hugging Face name.", required);
    v("freeze", freeze, "Freeze these parameters: no update, no state, not in the gradient norm.");
    v("lr", lr, "Peak learning rate, instead of the optimizer's.", positive);
    v("lr_scale", lr_scale, "Multiplies the optimizer's learning rate.", at_least(0));
    v("weight_decay", weight_decay, "Instead of the optimizer's; ignores decay_mask.", at_least(0));
    v("betas", betas, "Instead of the optimizer's.", below(0, 1));
  }
};

enum class GuardAction { kStop, kSkip };
constexpr EnumNames<GuardAction, 2> enum_names(GuardAction) {
  return {{{"stop", GuardAction::kStop}, {"skip", GuardAction::kSkip}}};
}

/// The policy for steps whose loss or gradient is NaN or infinite, or whose gradient is too large.
struct GuardConfig {
  GuardAction action = GuardAction::kStop;
  std::optional<double> max_grad_norm;
  int64_t max_skips = 10;
  template <class Visitor>
  void fields(Visitor& v) {
    v("action", action,
      "stop: end the run before the weights are damaged; skip: skip the update of that step and continue.");
    v("max_grad_norm", max_grad_norm, "A gradient norm (before clipping) above this also counts as bad.",
      positive);
    v("max_skips", max_skips, "How many steps in a row may be skipped; the next bad one ends the run.",
      positive);
  }
};

struct ClipConfig {
  double norm = 1.0;
  std::optional<double> value;
  std::optional<double> adaptive;
  /// Returns true when another kind than the global norm is chosen.
  bool by_element_or_row() const { return value || adaptive; }
  template <class Visitor>
  void fields(Visitor& v) {
    v("norm", norm, "Scale all gradients so that their global L2 norm is at most this; 0 turns clipping off.",
      at_least(0));
    v("value", value, "Clamp every element of the gradients to ±this, instead of clip.norm.", positive);
    v("adaptive", adaptive,
      "Limit the gradient norm of each matrix row and each vector to this share of the norm of its weights "
      "(Brock et al. 2021, arXiv:2102.06171), instead of clip.norm.",
      positive);
  }
};

/// An exponential moving average of the weights, same as Composer's EMA algorithm. half_life or decay
/// switches it on.
struct EmaConfig {
  std::optional<Duration> half_life;
  std::optional<double> decay;
  Duration start = {0, DurationUnit::kBatch};
  Duration every = {1, DurationUnit::kBatch};
  bool evaluate = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("half_life", half_life,
      "Keep an average of the weights in which those of this much training ago count half as much as the "
      "newest. Default: no average.",
      units("ba tok sp ep dur"), positive);
    v("decay", decay, "Instead of half_life: the share of the average that each update keeps, such as 0.999.",
      below(0, 1), positive);
    v("start", start,
      "The first update at or after this point copies the weights; there is no average before.",
      units("ba tok sp ep dur"), at_least(0));
    v("every", every, "How much training lies between two updates of the average.", units("ba tok sp ep dur"),
      positive);
    v("evaluate", evaluate,
      "Evaluate the average instead of the trained weights: the loss on eval_data, and in-context tasks.");
  }

  bool is_used() const { return half_life || decay; }
};

class ConfigProblems;

/// Report keys without effect.
void check(const OptimizerConfig& optimizer, ConfigProblems& problems);
void check(const GuardConfig& guard, ConfigProblems& problems);
void check(const ClipConfig& clip, ConfigProblems& problems);

}  // namespace tycho
