// Configuration of learning-rate schedules. Names and defaults are Composer's where it has the schedule.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/base/defined_kind.h"
#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/json.h"

namespace tycho {

/// The system whose curves a schedule reproduces, which decides the step that it is evaluated at.
enum class ScheduleCompat { kNone, kNanotron, kComposer };
constexpr EnumNames<ScheduleCompat, 3> enum_names(ScheduleCompat) {
  return {{{"none", ScheduleCompat::kNone},
           {"nanotron", ScheduleCompat::kNanotron},
           {"composer", ScheduleCompat::kComposer}}};
}

/// Settings of all schedules: a linear warm-up, and the interpretation of durations.
struct WarmupConfig {
  Duration t_warmup = {0, DurationUnit::kBatch};
  bool scale_warmup = false;
  double scale_schedule_ratio = 1.0;
  ScheduleCompat compat = ScheduleCompat::kNone;

  template <class Visitor>
  void warmup_fields(Visitor& v) {
    v("t_warmup", t_warmup, "Length of the linear warm-up from 0.", units("ba tok sp ep dur"), at_least(0));
  }
  /// Fields of a schedule that falls to alpha_f at t_max.
  template <class Visitor>
  static void end_fields(Visitor& v, Duration& t_max, double& alpha_f) {
    v("t_max", t_max, "When alpha_f is reached, from the start of the run.", units("ba tok sp ep dur"),
      positive);
    v("alpha_f", alpha_f, "Share of the peak at the end.", in_range(0, 1));
  }
  template <class Visitor>
  void compat_fields(Visitor& v) {
    v("scale_schedule_ratio", scale_schedule_ratio,
      "Stretches all other durations that are not in dur, for a run whose max_duration was changed by the "
      "same factor.",
      positive);
    v("scale_warmup", scale_warmup, "Let scale_schedule_ratio also stretch t_warmup.");
    v("compat", compat,
      "Factor of the first of W warm-up steps: none 1/W, as in TorchTitan; nanotron 0; composer 0, with the "
      "whole curve one step late and durations truncated as in Composer.");
  }
};

struct ConstantConfig : WarmupConfig {
  static constexpr const char* kKind = "constant";
  static constexpr const char* kHelp = "Constant after warm-up.";
  double alpha = 1.0;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("alpha", alpha, "Share of the peak to keep.", at_least(0));
    compat_fields(v);
  }
};

struct CosineConfig : WarmupConfig {
  static constexpr const char* kKind = "cosine";
  static constexpr const char* kHelp = "Half a cosine from the peak to alpha_f.";
  Duration t_max = {1, DurationUnit::kFraction};
  double alpha_f = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    end_fields(v, t_max, alpha_f);
    compat_fields(v);
  }
};

struct LinearConfig : WarmupConfig {
  static constexpr const char* kKind = "linear";
  static constexpr const char* kHelp = "A straight line from alpha_i to alpha_f.";
  double alpha_i = 1.0;
  Duration t_max = {1, DurationUnit::kFraction};
  double alpha_f = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("alpha_i", alpha_i, "Share of the peak after warm-up.", at_least(0));
    v("t_max", t_max, "When alpha_f is reached, from the start of the run.", units("ba tok sp ep dur"),
      positive);
    v("alpha_f", alpha_f, "Share of the peak at the end.", at_least(0));
    compat_fields(v);
  }
};

struct PolynomialConfig : WarmupConfig {
  static constexpr const char* kKind = "polynomial";
  static constexpr const char* kHelp = "A power of the remaining time, from the peak to alpha_f.";
  double power = 2.0;
  Duration t_max = {1, DurationUnit::kFraction};
  double alpha_f = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("power", power, "1 for a line, 2 for a parabola.", positive);
    end_fields(v, t_max, alpha_f);
    compat_fields(v);
  }
};

struct MultistepConfig : WarmupConfig {
  static constexpr const char* kKind = "multistep";
  static constexpr const char* kHelp = "Multiplied by gamma at each milestone.";
  std::vector<Duration> milestones;
  double gamma = 0.1;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("milestones", milestones, "When the learning rate changes, from the start of the run.",
      units("ba tok sp ep dur"), at_least(0), required);
    v("gamma", gamma, "Factor of the learning rate at each milestone.", positive);
    compat_fields(v);
  }
};

struct StepConfig : WarmupConfig {
  static constexpr const char* kKind = "step";
  static constexpr const char* kHelp = "Multiplied by gamma after every step_size.";
  Duration step_size;
  double gamma = 0.1;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("step_size", step_size, "Time between two changes of the learning rate.", units("ba tok sp ep dur"),
      positive, required);
    v("gamma", gamma, "Factor of the learning rate at each change.", positive);
    compat_fields(v);
  }
};

struct ExponentialConfig : WarmupConfig {
  static constexpr const char* kKind = "exponential";
  static constexpr const char* kHelp = "Smooth exponential decay, by the factor gamma per decay_period.";
  double gamma = 0.1;
  Duration decay_period = {1, DurationUnit::kEpoch};
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("gamma", gamma, "Factor of the learning rate over one decay_period.", positive, required);
    v("decay_period", decay_period, "Time in which the learning rate changes by gamma.",
      units("ba tok sp ep dur"), positive);
    compat_fields(v);
  }
};

/// SGDR (Loshchilov & Hutter 2017, arXiv:1608.03983).
struct CosineRestartsConfig : WarmupConfig {
  static constexpr const char* kKind = "cosine_restarts";
  static constexpr const char* kHelp = "Half a cosine from the peak to alpha_f, repeated.";
  Duration t_0;
  double t_mult = 1.0;
  double alpha_f = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("t_0", t_0, "Length of the first cosine, from the start of the run.", units("ba tok sp ep dur"),
      positive, required);
    v("t_mult", t_mult, "Length of each cosine as a multiple of the previous one.", positive);
    v("alpha_f", alpha_f, "Share of the peak at the end of each.", in_range(0, 1));
    compat_fields(v);
  }
};

/// LLM Foundry's schedule, after Zhai et al. 2022 (arXiv:2106.04560).
struct InvSqrtConfig : WarmupConfig {
  static constexpr const char* kKind = "inv_sqrt";
  static constexpr const char* kHelp = "Decays with the square root of time, then linearly at the end.";
  Duration t_scale = {0, DurationUnit::kBatch};
  Duration t_cooldown = {0, DurationUnit::kBatch};
  Duration t_max = {1, DurationUnit::kFraction};
  double alpha_f_decay = 0.0;
  double alpha_f_cooldown = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("t_scale", t_scale,
      "Time scale: three times this after warm-up, the learning rate is half of the peak.",
      units("ba tok sp ep dur"), positive, required);
    v("t_cooldown", t_cooldown, "Length of the linear cooldown at the end.", units("ba tok sp ep dur"),
      at_least(0));
    v("t_max", t_max, "When alpha_f_cooldown is reached, from the start of the run.",
      units("ba tok sp ep dur"), positive);
    v("alpha_f_decay", alpha_f_decay, "Share of the peak that the square-root decay approaches.",
      in_range(0, 1));
    v("alpha_f_cooldown", alpha_f_cooldown, "Share of the peak at the end, at most alpha_f_decay.",
      in_range(0, 1));
    compat_fields(v);
  }
};

/// "1-sqrt" is Nanotron's word for TorchTitan's "sqrt".
enum class DecayType { kLinear, kSqrt, kCosine };
constexpr EnumNames<DecayType, 4> enum_names(DecayType) {
  return {{{"linear", DecayType::kLinear},
           {"sqrt", DecayType::kSqrt},
           {"1-sqrt", DecayType::kSqrt},
           {"cosine", DecayType::kCosine}}};
}

/// Warm-up, stable, decay (Hu et al. 2024, arXiv:2404.06395).
struct WsdConfig : WarmupConfig {
  static constexpr const char* kKind = "wsd";
  static constexpr const char* kHelp = "Warm-up, then constant, then decay.";
  Duration t_decay = {0.2, DurationUnit::kFraction};
  DecayType decay_type = DecayType::kLinear;
  Duration t_max = {1, DurationUnit::kFraction};
  double alpha_f = 0.0;
  template <class Visitor>
  void fields(Visitor& v) {
    warmup_fields(v);
    v("t_decay", t_decay, "Length of the decay, which ends at t_max.", units("ba tok sp ep dur"),
      at_least(0));
    v("decay_type", decay_type, "Form of the decay: 1 - p, 1 - sqrt(p) or half a cosine.");
    end_fields(v, t_max, alpha_f);
    compat_fields(v);
  }
};

/// A function of the recipe, tabulated before the run: factors[s] is for the step after s steps.
struct FnScheduleConfig : WarmupConfig, DefinedKind {
  static constexpr const char* kKind = "fn";
  static constexpr const char* kHelp = "A pure function of the step, tabulated before the run.";
  std::string name = "fn";
  FunctionRef fn;
  /// Not a key: the function's values, set by the host, which can call it.
  std::shared_ptr<const std::vector<double>> factors;
  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "Its name in plots.");
    v("fn", fn,
      "Returns the share of the peak at s.step of s.total, or at s.frac from 0 to 1; s.warmup steps are "
      "warm-up.",
      required);
    warmup_fields(v);
  }
};

/// A function of the recipe that is called before every step.
struct DynamicScheduleConfig : WarmupConfig, DefinedKind {
  static constexpr const char* kKind = "dynamic";
  static constexpr const char* kHelp = "A function that is called before every step and may keep state.";
  std::string name = "dynamic";
  FunctionRef fn;
  Json state = json_object();
  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "Its name in messages.");
    v("fn", fn, "Returns the share of the peak; s also has the loss of the previous step.", required);
    v("state", state, "State, as plain data: passed as the second argument and kept in every checkpoint.");
    warmup_fields(v);
  }
};

struct SchedulerConfig : OneOf<ConstantConfig, CosineConfig, LinearConfig, PolynomialConfig, MultistepConfig,
                               StepConfig, ExponentialConfig, CosineRestartsConfig, InvSqrtConfig, WsdConfig,
                               FnScheduleConfig, DynamicScheduleConfig> {
  static constexpr const char* kNamespace = "sched";
  const char* kind() const { return kind_name(value); }
};

/// Sets the table of a schedule that is a function. Leaves other kinds unchanged.
inline void set_factors(SchedulerConfig& scheduler, const std::vector<double>& factors) {
  if (auto* fn = std::get_if<FnScheduleConfig>(&scheduler.value))
    fn->factors = std::make_shared<const std::vector<double>>(factors);
}

/// Returns the table of a schedule that is a function; empty for another kind.
inline std::vector<double> factors_of(const SchedulerConfig& scheduler) {
  const auto* fn = std::get_if<FnScheduleConfig>(&scheduler.value);
  return fn != nullptr && fn->factors ? *fn->factors : std::vector<double>();
}

}  // namespace tycho
