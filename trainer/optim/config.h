// What optimizers, parameter groups and clipping can be told.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/fields.h"

namespace tycho {

/// Which parameters weight decay acts on. Groups with a weight_decay of their own decay in any case.
enum class DecayMask { kMatrices, kHidden, kAll };
constexpr EnumNames<DecayMask, 3> enum_names(DecayMask) {
  return {{{"matrices", DecayMask::kMatrices}, {"hidden", DecayMask::kHidden}, {"all", DecayMask::kAll}}};
}
inline constexpr const char* kDecayMaskHelp =
    "What decays: matrices spares norms and biases; hidden spares embeddings and head too; all spares "
    "nothing, as Composer and TorchTitan do.";

/// AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101), decay as torch.optim.AdamW has it.
struct AdamWConfig {
  static constexpr const char* kKind = "adamw";
  static constexpr const char* kHelp = "AdamW; each step removes lr x weight_decay of a weight.";
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up.", positive, required);
    v("betas", betas, "Decay of the first and second moment.", below(0, 1));
    v("eps", eps, "Added to the root of the second moment.", positive);
    v("weight_decay", weight_decay, "Share of a weight that a step removes, times lr.", at_least(0));
    v("decay_mask", decay_mask, kDecayMaskHelp);
  }
};

/// Composer's DecoupledAdamW.
struct DecoupledAdamWConfig {
  static constexpr const char* kKind = "decoupled_adamw";
  static constexpr const char* kHelp = "AdamW; each step removes weight_decay x (lr / peak lr) of a weight.";
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 1e-5;
  DecayMask decay_mask = DecayMask::kMatrices;

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up.", positive, required);
    v("betas", betas, "Decay of the first and second moment.", below(0, 1));
    v("eps", eps, "Added to the root of the second moment.", positive);
    v("weight_decay", weight_decay,
      "Share of a weight that a step at the peak removes: adamw's weight_decay times lr.", below(0, 1));
    v("decay_mask", decay_mask, kDecayMaskHelp);
  }
};

/// Lion (Chen et al. 2023, arXiv:2302.06675).
struct LionConfig {
  static constexpr const char* kKind = "lion";
  static constexpr const char* kHelp = "Lion: steps of one size by the sign of the momentum.";
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up; a third to a tenth of AdamW's.", positive, required);
    v("betas", betas, "Weight of the momentum in the step, and its decay.", below(0, 1));
    v("weight_decay", weight_decay, "Share of a weight that a step removes, times lr.", at_least(0));
    v("decay_mask", decay_mask, kDecayMaskHelp);
  }
};

/// LLM Foundry's DecoupledLionW.
struct DecoupledLionConfig {
  static constexpr const char* kKind = "decoupled_lionw";
  static constexpr const char* kHelp = "Lion; each step removes weight_decay x (lr / peak lr) of a weight.";
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up; a third to a tenth of AdamW's.", positive, required);
    v("betas", betas, "Weight of the momentum in the step, and its decay.", below(0, 1));
    v("weight_decay", weight_decay,
      "Share of a weight that a step at the peak removes: lion's weight_decay times lr.", below(0, 1));
    v("decay_mask", decay_mask, kDecayMaskHelp);
  }
};

/// torch.optim.SGD with dampening 0.
struct SgdConfig {
  static constexpr const char* kKind = "sgd";
  static constexpr const char* kHelp = "Gradient descent with momentum.";
  double lr = 0.1;
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up.", positive, required);
    v("momentum", momentum, "Share of the last step that goes on; 0 keeps no state.", below(0, 1));
    v("nesterov", nesterov, "Look one step ahead along the momentum.");
    v("weight_decay", weight_decay, "Times the weight, added to its gradient.", at_least(0));
    v("decay_mask", decay_mask, kDecayMaskHelp);
  }
};

/// What lr is multiplied by for a matrix of A rows and B columns.
enum class MuonScale { kOriginal, kMatchRmsAdamW };
constexpr EnumNames<MuonScale, 2> enum_names(MuonScale) {
  return {{{"original", MuonScale::kOriginal}, {"match_rms_adamw", MuonScale::kMatchRmsAdamW}}};
}

/// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), as torch.optim.Muon, for the matrices of the
/// blocks; AdamW for embeddings, head, norms and biases.
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

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate of the matrices, after warm-up.", positive, required);
    v("momentum", momentum, "Decay of the mean of the gradients.", below(0, 1));
    v("nesterov", nesterov, "Look one step ahead along the momentum.");
    v("ns_steps", ns_steps, "Newton-Schulz iterations.", in_range(1, 20));
    v("adjust_lr", adjust_lr,
      "lr of a matrix of A rows and B columns: original times sqrt(max(1, A / B)), match_rms_adamw times "
      "0.2 sqrt(max(A, B)), so that AdamW's lr fits.");
    v("weight_decay", weight_decay, "Share of a weight that a step removes, times lr.", at_least(0));
    v("decay_mask", decay_mask, kDecayMaskHelp);
    v("adamw_lr", adamw_lr, "Peak learning rate of what AdamW updates. Default: lr.", positive);
    v("betas", betas, "AdamW's decay of the first and second moment.", below(0, 1));
    v("eps", eps, "AdamW's, added to the root of the second moment.", positive);
  }
};

struct OptimizerConfig
    : OneOf<AdamWConfig, DecoupledAdamWConfig, LionConfig, DecoupledLionConfig, SgdConfig, MuonConfig> {
  static constexpr const char* kNamespace = "optim";
};

/// Parameters that are treated apart. The first group that matches a name has it.
struct ParamGroupConfig {
  std::string match;
  bool freeze = false;
  std::optional<double> lr;
  std::optional<double> lr_scale;
  std::optional<double> weight_decay;
  std::optional<std::array<double, 2>> betas;

  template <class Visitor>
  void fields(Visitor& v) {
    v("match", match, "Regular expression that is found in the parameter's name, as Hugging Face has it.",
      required);
    v("freeze", freeze, "Keep these parameters as they are: no update, no state, no part in the norm.");
    v("lr", lr, "Peak learning rate, instead of the optimizer's.", positive);
    v("lr_scale", lr_scale, "Factor of the optimizer's learning rate.", at_least(0));
    v("weight_decay", weight_decay, "Instead of the optimizer's; acts whatever its decay_mask.", at_least(0));
    v("betas", betas, "Instead of the optimizer's.", below(0, 1));
  }
};

enum class GuardAction { kStop, kSkip };
constexpr EnumNames<GuardAction, 2> enum_names(GuardAction) {
  return {{{"stop", GuardAction::kStop}, {"skip", GuardAction::kSkip}}};
}

/// What happens to a step whose loss or gradient is NaN or infinite, or whose gradient is too large.
struct GuardConfig {
  GuardAction action = GuardAction::kStop;
  std::optional<double> max_grad_norm;
  int64_t max_skips = 10;
  template <class Visitor>
  void fields(Visitor& v) {
    v("action", action,
      "stop: end the run before the weights are spoilt; skip: leave out the update of that step and go on.");
    v("max_grad_norm", max_grad_norm, "A gradient norm above this counts as bad too, before clipping.",
      positive);
    v("max_skips", max_skips, "So many steps in a row may be skipped; the next bad one ends the run.",
      positive);
  }
};

struct ClipConfig {
  double norm = 1.0;
  std::optional<double> value;
  std::optional<double> adaptive;
  /// Whether another way is chosen than the global norm.
  bool by_element_or_row() const { return value || adaptive; }
  template <class Visitor>
  void fields(Visitor& v) {
    v("norm", norm, "Scale all gradients so that their global L2 norm is at most this; 0 turns clipping off.",
      at_least(0));
    v("value", value, "Clamp every number of the gradients to ±this, instead of clip.norm.", positive);
    v("adaptive", adaptive,
      "Scale the gradient of each row of a matrix, and of each vector, to at most this share of the norm of "
      "its "
      "weights (Brock et al. 2021, arXiv:2102.06171), instead of clip.norm.",
      positive);
  }
};

class ConfigProblems;

/// Each reports keys that would do nothing.
void check(const OptimizerConfig& optimizer, ConfigProblems& problems);
void check(const GuardConfig& guard, ConfigProblems& problems);
void check(const ClipConfig& clip, ConfigProblems& problems);

}  // namespace tycho
