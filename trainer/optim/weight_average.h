// Other weights than the trained ones, for evaluations and exports: a moving average, or what an optimizer
// with eval_weights computes.
#pragma once
#include <functional>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_rules.h"
#include "trainer/optim/optimizer.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// StateBuffer::name of the average, also used by checkpoints and the plan.
inline constexpr const char* kAverageBuffer = "ema";

/// An average in fp32, whatever the weights are; of the fp32 master weights if there are any. Frozen
/// parameters have none, since they would equal it. Elementwise, so ranks do not communicate. Asynchronous on
/// CUDA.
class WeightAverage {
 public:
  /// Allocates memory. `ranges` are this rank's part of each unit. `replaces` is true when put_in_place()
  /// will be used.
  WeightAverage(const std::vector<OwnedRange>& ranges, const ParamRules& rules, bool replaces);

  /// Returns true once begin() was called, or the average was loaded.
  bool has_begun() const { return has_begun_; }
  /// Sets has_begun() from a checkpoint, before state() is filled from it.
  void set_begun(bool begun) { has_begun_ = begun; }
  /// Computes average = weights.
  void begin();
  /// Computes average = decay average + (1 - decay) weights.
  void update(double decay);
  /// Lets `write` fill the buffers of the average.
  void fill(const std::function<void(const std::vector<StateBuffer>&)>& write);

  /// Returns the state for a checkpoint; empty before it has begun.
  std::vector<StateBuffer>& state();

  /// Makes the model compute with the average, rounded to its dtype, until put_back(). Weights that are fp32
  /// themselves are stored in the average's own memory meanwhile, so nothing else may read state() then.
  void put_in_place();
  /// Restores the weights bit for bit.
  void put_back();

 private:
  /// Flat views of adjacent parameters of an owned range.
  struct Part {
    Tensor average;  // fp32
    Tensor weights;  // updated by the optimizer: fp32, or bf16 trained in place
    Tensor params;   // used by the model: `weights` itself, or its rounded copy
    Tensor kept;     // bf16, the weights trained in place while the average replaces them
  };

  std::vector<StateBuffer> state_, none_;
  std::vector<Part> parts_;
  bool has_begun_ = false;
};

}  // namespace tycho
