// What optimizers, schedules and clipping can be told.
#pragma once
#include <array>
#include <cstdint>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho {

/// AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101).
struct AdamWConfig {
  static constexpr const char* kKind = "adamw";
  static constexpr const char* kHelp = "AdamW with fp32 master weights.";
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up.", positive, required);
    v("betas", betas, "Decay of the first and second moment.", below(0, 1));
    v("eps", eps, "Added to the root of the second moment.", positive);
    v("weight_decay", weight_decay, "Decay of matrices: each step removes lr x weight_decay of a weight.",
      at_least(0));
  }
};

struct OptimizerConfig : OneOf<AdamWConfig> {
  static constexpr const char* kNamespace = "optim";
};

struct ConstantConfig {
  static constexpr const char* kKind = "constant";
  static constexpr const char* kHelp = "Constant after warm-up.";
  Duration warmup = {0, DurationUnit::kBatch};
  template <class Visitor>
  void fields(Visitor& v) {
    v("warmup", warmup, "Linear rise from 0 to the peak.", units("ba tok sp dur"), at_least(0));
  }
};

struct CosineConfig {
  static constexpr const char* kKind = "cosine";
  static constexpr const char* kHelp = "Half a cosine from the peak to floor.";
  Duration warmup = {0, DurationUnit::kBatch};
  double floor = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("warmup", warmup, "Linear rise from 0 to the peak.", units("ba tok sp dur"), at_least(0));
    v("floor", floor, "Share of the peak at the end.", in_range(0, 1));
  }
};

struct LinearConfig {
  static constexpr const char* kKind = "linear";
  static constexpr const char* kHelp = "A straight line from the peak to floor.";
  Duration warmup = {0, DurationUnit::kBatch};
  double floor = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("warmup", warmup, "Linear rise from 0 to the peak.", units("ba tok sp dur"), at_least(0));
    v("floor", floor, "Share of the peak at the end.", in_range(0, 1));
  }
};

enum class DecayShape { kLinear, kSqrt, kCosine };
constexpr EnumNames<DecayShape, 3> enum_names(DecayShape) {
  return {{{"linear", DecayShape::kLinear}, {"sqrt", DecayShape::kSqrt}, {"cosine", DecayShape::kCosine}}};
}

/// Warm-up, stable, decay (Hu et al. 2024, arXiv:2404.06395).
struct WsdConfig {
  static constexpr const char* kKind = "wsd";
  static constexpr const char* kHelp = "Warm-up, stable, decay.";
  Duration warmup = {0, DurationUnit::kBatch};
  Duration decay = {0.2, DurationUnit::kFraction};
  DecayShape shape = DecayShape::kLinear;
  double floor = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("warmup", warmup, "Linear rise from 0 to the peak.", units("ba tok sp dur"), at_least(0));
    v("decay", decay, "Length of the final decay.", units("ba tok sp dur"), at_least(0));
    v("shape", shape, "Form of the decay.");
    v("floor", floor, "Share of the peak at the end.", in_range(0, 1));
  }
};

struct SchedulerConfig : OneOf<ConstantConfig, CosineConfig, LinearConfig, WsdConfig> {
  static constexpr const char* kNamespace = "sched";
};

struct ClipConfig {
  double norm = 1.0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("norm", norm, "Scale all gradients so that their global L2 norm is at most this; 0 turns clipping off.",
      at_least(0));
  }
};

}  // namespace tycho
