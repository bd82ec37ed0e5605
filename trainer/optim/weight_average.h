// An exponential moving average of the weights that a rank owns.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/param_rules.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// What checkpoints and the plan call it, as StateBuffer::name.
inline constexpr const char* kAverageBuffer = "ema";

/// fp32, whatever the weights are; of fp32 master weights where there are some. Frozen parameters have none:
/// they are their own. Elementwise, so ranks need nothing of each other. Asynchronous on CUDA.
class WeightAverage {
 public:
  /// Takes its memory. `ranges`: what this rank owns of each unit. `replaces`: put_in_place() will be used.
  WeightAverage(const std::vector<OwnedRange>& ranges, const ParamRules& rules, bool replaces);

  /// Whether it holds anything.
  bool has_begun() const { return has_begun_; }
  /// What a checkpoint says of that, before state() is filled from it.
  void set_begun(bool begun) { has_begun_ = begun; }
  /// average = weights.
  void begin();
  /// average = decay average + (1 - decay) weights.
  void update(double decay);

  /// What a checkpoint keeps; nothing before it has begun.
  std::vector<StateBuffer>& state();

  /// The model computes with the average, rounded to its dtype, until put_back(). Weights that are fp32
  /// themselves wait in the average's own memory meanwhile: nothing else may read state() then.
  void put_in_place();
  /// The weights are what they were, to the bit.
  void put_back();

 private:
  /// Neighbouring parameters of an owned range: flat views.
  struct Part {
    Tensor average;  // fp32
    Tensor weights;  // that the optimizer updates: fp32, or bf16 that is trained in place
    Tensor params;   // that the model computes with: `weights` itself, or its rounded copy
    Tensor kept;     // bf16, of weights that are trained in place, while the average is in their place
  };

  std::vector<StateBuffer> state_, none_;
  std::vector<Part> parts_;
  bool has_begun_ = false;
};

}  // namespace tycho
