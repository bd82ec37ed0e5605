// Checks of the weights that an optimizer's kernel updates.
#include "trainer/kernels/optimizer/optimized_weights.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"

namespace tycho {

OptimizedWeights optimized_weights(std::string_view op, const WeightTensors& weights) {
  const Tensor& params = weights.params;
  OptimizedWeights raw{.dtype = dtype_of(op, params), .params = params.mutable_data_ptr()};
  TYCHO_CHECK(params.is_contiguous(), "[{}] params: expected contiguous memory", op);
  if (weights.master.defined()) {
    TYCHO_CHECK(raw.dtype == Dtype::kBf16, "[{}] fp32 params are their own master: pass an undefined tensor",
                op);
    check_tensor(op, "master", weights.master, params.sizes(), at::kFloat, params.device());
    raw.master = weights.master.mutable_data_ptr<float>();
  }
  TYCHO_CHECK(!weights.stochastic || (raw.dtype == Dtype::kBf16 && raw.master == nullptr),
              "[{}] only bf16 params without a master can be rounded stochastically", op);
  raw.stochastic = weights.stochastic, raw.key = weights.key, raw.step = weights.step;
  raw.place = weights.place;
  return raw;
}

}  // namespace tycho
