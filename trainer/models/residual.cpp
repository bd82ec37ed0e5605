// Fuses dropout with the addition; without dropout the matrix product adds.
#include "trainer/models/residual.h"

#include "trainer/base/random/philox.h"
#include "trainer/kernels/dropout.h"
#include "trainer/layout/decoder_layout.h"

namespace tycho {

DropoutMask dropout_mask(const DropoutSource& source, DropoutSite site) {
  const auto words = philox(source.key, static_cast<uint64_t>(site));
  return {.p = site == DropoutSite::kScores ? source.attn_p : source.p,
          .key = uint64_t{words[0]} << 32 | words[1]};
}

void add_to_stream(LinearParams p, const Tensor& x_NK, const Tensor& residual_ND, BlockActivations act,
                   DropoutSite site, Tensor& y_ND) {
  if (act.dropout.p == 0) return linear_add(p, x_NK, residual_ND, y_ND);
  Tensor& added_ND = act.scratch[block_scratch::kAdded];
  linear(p, x_NK, added_ND);
  dropout(dropout_mask(act.dropout, site), added_ND, residual_ND, y_ND);
}

const Tensor& added_gradient(const Tensor& dy_ND, BlockActivations act, DropoutSite site) {
  if (act.dropout.p == 0) return dy_ND;
  Tensor& d_added_ND = act.scratch[block_scratch::kAdded];
  dropout(dropout_mask(act.dropout, site), dy_ND, Tensor(), d_added_ND);
  return d_added_ND;
}

}  // namespace tycho
