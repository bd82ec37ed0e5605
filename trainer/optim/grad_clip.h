// The global norm of the gradients, and clipping by it.
#pragma once
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_rules.h"
#include "trainer/recipe/optim.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Returns the sum of squares over one or more flat buffers, fp32 or bf16, perhaps empty; finite when all
/// their numbers are. On their device, fp64, one element.
Tensor sum_of_squares(const std::vector<Tensor>& flats);

/// Two tensors on the device, fp32, one element each.
struct GradNorm {
  Tensor norm_1;   // before clipping
  Tensor scale_1;  // factor of the gradients in the optimizer
};

/// kExact gives the same bits whatever ranks own the gradients (exact_squares.h).
enum class SquareSum { kFast, kExact };

/// Returns the L2 norm over the gradients of a model, and the factor min(1, max / (norm + 1e-6)) (Pascanu et
/// al. 2013); the factor is 1 when another kind of clipping is chosen. `grads` are the gradients that this
/// rank owns (fp32, flat). `owners` are the ranks that share the gradients, each with other parts
/// (UnitStore::owners): the squares are summed over them, and all get the same bits. Replicas that each hold
/// all gradients are not owners of one another: their world is one rank, and nothing is added. Collective on
/// `owners`.
GradNorm clip_gradients(const ClipConfig& config, const std::vector<Tensor>& grads, Communicator& owners,
                        SquareSum sum = SquareSum::kFast);

/// Applies the other two kinds of clipping, which change trained gradients in place. clip.value limits each
/// number to [-value, value]. clip.adaptive multiplies each row of a matrix, and each vector, by min(1,
/// adaptive |weights| / |gradient|), like Composer: the gradient of a zero vector becomes 0. Ranks may own
/// parts of rows: the adaptive kind sums squares over `owners` like clip_gradients, and is collective on
/// them.
void clip_in_place(const ClipConfig& config, const std::vector<OwnedRange>& ranges, const ParamRules& rules,
                   Communicator& owners);

}  // namespace tycho
