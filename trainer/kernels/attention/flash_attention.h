// Attention on a GPU: ATen's flash attention with windows, documents, dropout, and ALiBi as columns.
#pragma once
#include "trainer/kernels/attention/alibi_columns.h"
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/attention/packed_documents.h"
#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// The rules that ScoreRules points to, as flash attention takes them: made once, not for every block.
struct FlashRules {
  AlibiColumns alibi;         // of alibi_H, scale and the sequence
  PackedDocuments documents;  // of document_BT, and of the shape's stretches
};

// All of bf16 on a GPU; head widths a multiple of 8 up to 256, 248 with ALiBi; no soft cap; no dropout where
// queries are those of stretches. Anything else is an Error. What is dropped is drawn from rules.dropout.key
// by ATen: other bits than on a CPU, and the same ones whenever the pass is repeated. Rows, out_NE and
// gradients are checked by attention().

/// Why it cannot compute such rows (base/attention_limits.h); nullptr when it can.
const char* flash_obstacle(at::ScalarType type, const AttentionShape& shape, const ScoreRules& rules);

/// out_NE [B*T, H*d] from rows. Returns what the backward needs, in ATen's memory.
std::vector<Tensor> flash_attention(const AttentionShape& shape, const ScoreRules& rules,
                                    const FlashRules& flash, const AttentionRows& rows, Tensor& out_NE);
/// Of a part of the keys, whose stretches are those of queries or lie before them, or all behind: adds to
/// sum_NE and log_sum_exp_BHT, both fp32. With ALiBi the log-sum-exp is that of scores which differ from
/// ALiBi's by a number for each query. `state`: what the backward of every part needs besides; parts that no
/// query sees leave it as it is.
void flash_attention_part(const AttentionShape& shape, const ScoreRules& rules, const FlashRules& flash,
                          const AttentionRows& rows, Tensor& sum_NE, Tensor& log_sum_exp_BHT,
                          std::vector<Tensor>& state);
void flash_attention_part_backward(const AttentionShape& shape, const ScoreRules& rules,
                                   const FlashRules& flash, const AttentionRows& rows, const Tensor& out_NE,
                                   const Tensor& log_sum_exp_BHT, const std::vector<Tensor>& state,
                                   const Tensor& dout_NE, const AttentionRows& gradients);
void flash_attention_backward(const AttentionShape& shape, const ScoreRules& rules, const FlashRules& flash,
                              const AttentionRows& rows, const Tensor& out_NE,
                              const std::vector<Tensor>& state, const Tensor& dout_NE,
                              const AttentionRows& gradients);

}  // namespace tycho
