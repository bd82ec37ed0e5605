// Attention on a GPU: ATen's flash attention 2, or FlashAttention-3, with windows, documents, dropout, and
// ALiBi as columns.
#pragma once
#include "trainer/kernels/attention/alibi_columns.h"
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/attention/packed_documents.h"
#include "trainer/kernels/attention/rope.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Tensors for the rules that ScoreRules points to, as flash attention takes them. Made once, not for every
/// block.
struct FlashRules {
  AlibiColumns alibi;         // made from alibi_H, scale and the sequence
  PackedDocuments documents;  // made from document_BT and the shape's spans
};

// Requirements: rows that flash_obstacle() or uses_flash_3() accepts. Anything else is an Error. ATen draws
// the dropout from rules.dropout.key: the bits differ from a CPU's, and are the same whenever the pass is
// repeated. attention() checks rows, out_NE and gradients.

/// Returns the reason why flash attention 2 cannot compute such rows (base/attention_limits.h); nullptr when
/// it can.
const char* flash_obstacle(at::ScalarType type, const AttentionShape& shape, const ScoreRules& rules);

/// Returns true if FlashAttention-3 computes such rows: rules.flash_3 asks for it, and it can. The library is
/// opened by the first call; see flash_attention_3.h.
bool uses_flash_3(at::ScalarType type, const AttentionShape& shape, const ScoreRules& rules);

/// Computes out_NE [B*T, H*d] from rows: an undefined one becomes the kernel's own result, without a copy
/// where that has no columns of ALiBi. Returns the state for the backward, in ATen's memory.
std::vector<Tensor> flash_attention(const AttentionShape& shape, const ScoreRules& rules,
                                    const FlashRules& flash, const AttentionRows& rows, Tensor& out_NE);
/// Adds attention to a part of the keys to sum_NE and log_sum_exp_BHT, both fp32. The spans of the keys are
/// spans of the queries, or before these, or all after these. With ALiBi the log-sum-exp is that of scores
/// which differ from ALiBi's by a number for each query. `state`: for the backward of every part; parts that
/// no query sees leave it unchanged.
void flash_attention_part(const AttentionShape& shape, const ScoreRules& rules, const FlashRules& flash,
                          const AttentionRows& rows, Tensor& sum_NE, Tensor& log_sum_exp_BHT,
                          std::vector<Tensor>& state);
void flash_attention_part_backward(const AttentionShape& shape, const ScoreRules& rules,
                                   const FlashRules& flash, const AttentionRows& rows, const Tensor& out_NE,
                                   const Tensor& log_sum_exp_BHT, const std::vector<Tensor>& state,
                                   const Tensor& dout_NE, const AttentionRows& gradients);
/// Returns true if the gradients are rotated back (pack_gradients.h): those of whole sequences, unless
/// FlashAttention-3 wrote them where they belong.
bool flash_attention_backward(const AttentionShape& shape, const ScoreRules& rules, const FlashRules& flash,
                              const AttentionRows& rows, const Tensor& out_NE,
                              const std::vector<Tensor>& state, const Tensor& dout_NE,
                              const AttentionRows& gradients, const RopeTables& rotation = {});

}  // namespace tycho
