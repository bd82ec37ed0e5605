// The global norm of the gradients, and clipping by it.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/optim/config.h"
#include "trainer/optim/param_rules.h"
#include "trainer/parallel/communicator.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// The sum of squares over flat buffers, one or more, fp32 or bf16, perhaps empty: finite when all their
/// numbers are. On their device, fp64, one element.
Tensor sum_of_squares(const std::vector<Tensor>& flats);

/// Both on the device, fp32, one element.
struct GradNorm {
  Tensor norm_1;   // before clipping
  Tensor scale_1;  // what the optimizer multiplies gradients by
};

/// kExact: the same bits whichever ranks share the gradients out (exact_squares.h).
enum class SquareSum { kFast, kExact };

/// L2 norm over the gradients of a model, and the factor min(1, max / (norm + 1e-6)) (Pascanu et al. 2013);
/// the factor is 1 when another way of clipping is chosen. `grads`: what this rank owns of them (fp32, flat).
/// `owners`: the ranks that share the gradients out, each with others of them (UnitStore::owners): the sum of
/// squares is summed over these, and all get the same bits. Replicas that each hold all gradients are no
/// owners of one another: there it is the world of one, and nothing is added. Collective on `owners`.
GradNorm clip_gradients(const ClipConfig& config, const std::vector<Tensor>& grads, Communicator& owners,
                        SquareSum sum = SquareSum::kFast);

/// The other two ways, which change the gradients of what is trained in place. clip.value: each number to
/// [-value, value]. clip.adaptive: each row of a matrix, and each vector, by min(1, adaptive |weights| /
/// |gradient|), as Composer does: a vector of zeros has its gradient taken away. Ranks may own parts of rows:
/// the adaptive way sums their squares over `owners`, as above, and is collective there.
void clip_in_place(const ClipConfig& config, const std::vector<OwnedRange>& ranges, const ParamRules& rules,
                   Communicator& owners);

}  // namespace tycho
