// Describes a call of attention by what the limits of a GPU's libraries depend on.
#pragma once
#include "trainer/base/attention_limits.h"
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

inline GpuAttentionCase attention_case(at::ScalarType type, const AttentionShape& s,
                                       const ScoreRules& rules) {
  return {.bf16 = type == at::kBFloat16,
          .softcap = rules.softcap != 0.0f,
          .alibi = rules.alibi_H != nullptr,
          .head_dim = s.head_dim,
          .seq = num_keys(s),
          .cut = s.keys > 0,
          .drops = rules.dropout.p > 0,
          .documents = rules.document_BT != nullptr,
          .window = rules.window,
          .any_order = rules.any_order};
}

}  // namespace tycho
