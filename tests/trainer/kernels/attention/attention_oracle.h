// What tests of attention share: softmax(q kᵀ) v with autograd in double, under every rule.
#pragma once
#include <functional>

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {

/// q: [B, H, T, d]; k, v: [B, K, S, d]; the last T of S positions are q's. Rules as their comments say them;
/// their pointers are to the host.
Tensor oracle_attention(const Tensor& q, Tensor k, Tensor v, const ScoreRules& rules);
/// Of packed rows [B*T, (H + 2K) d].
Tensor oracle_packed(const AttentionShape& shape, const ScoreRules& rules, const Tensor& qkv);

/// 1 / sqrt(d), and nothing else.
ScoreRules plain_rules(const AttentionShape& shape);

/// Each rule alone, and all together, with memory for what they point to.
class EveryRule {
 public:
  explicit EveryRule(const AttentionShape& shape);
  const std::vector<ScoreRules>& rules() const { return rules_; }

 private:
  std::vector<float> slopes_;
  std::vector<int32_t> documents_;
  std::vector<ScoreRules> rules_;
};

struct AttentionCase {
  AttentionShape shape;
  at::ScalarType type;
};
std::vector<AttentionCase> attention_cases();
std::string attention_case_name(const testing::TestParamInfo<AttentionCase>& info);

/// Relative to the largest element.
void expect_near(const Tensor& actual, const Tensor& oracle, double fp32, double bf16);

/// An attention and its backward over packed rows.
struct AttentionPair {
  std::function<void(const Tensor& qkv, Tensor& out, Tensor& log_sum_exp)> forward;
  std::function<void(const Tensor& qkv, const Tensor& out, const Tensor& log_sum_exp, const Tensor& dout,
                     Tensor& dqkv)>
      backward;
};
/// Output and gradient of both against the oracle's, on the device; and twice the same bits when `repeats`.
void expect_equals_autograd(const AttentionShape& shape, const ScoreRules& rules, at::ScalarType type,
                            const AttentionPair& pair, const at::Device& device = at::kCPU,
                            bool repeats = true);

}  // namespace tycho
