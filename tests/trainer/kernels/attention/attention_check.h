// attention() and its backward against the oracle, on any device: over whole sequences, over spans of queries
// and over parts of the keys.
#pragma once
#include "tests/trainer/kernels/attention/attention_oracle.h"
#include "trainer/kernels/attention/attention.h"

namespace tycho {

/// Results of a forward pass, in memory that it is given.
struct AttentionMemory {
  Tensor out_NE, log_sum_exp_BHT;
  std::vector<Tensor> state;
  AttentionMemory(const AttentionShape& s, const Tensor& qkv)
      : out_NE(at::full({s.batch * s.seq, s.heads * s.head_dim}, 7.0, qkv.options())),
        log_sum_exp_BHT(at::full({s.batch, s.heads, s.seq}, 7.0, qkv.options().dtype(at::kFloat))) {}
  operator AttentionSaved() { return {out_NE, log_sum_exp_BHT, state}; }
};

/// Rules that point to a device's memory, made from rules that point to the host, and their tensors for flash
/// attention.
struct OnDevice {
  OnDevice(const AttentionShape& s, const ScoreRules& host, const at::Device& device);
  ScoreRules rules;
  FlashRules flash;
  Tensor slopes_H;
};

/// Compares whole sequences; with `repeats`, backward twice, too.
void expect_equals_autograd(const AttentionShape& s, const ScoreRules& rules, at::ScalarType type,
                            const at::Device& device, bool repeats);
/// Output rows are those of the whole, and so are gradients: of queries in their places, of keys in sum.
void expect_spans_equal_whole(const AttentionShape& s, at::ScalarType type, const at::Device& device,
                              bool flash_3 = false);
/// Compares attention over all keys with attention over each pair of spans in turn, the order of a ring.
void expect_parts_equal_whole(const AttentionShape& s, at::ScalarType type, const at::Device& device,
                              bool flash_3 = false);

}  // namespace tycho
