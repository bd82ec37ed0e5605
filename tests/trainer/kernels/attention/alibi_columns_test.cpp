// Columns whose product is ALiBi: how exact they are, and attention over them against attention with slopes.
#include "trainer/kernels/attention/alibi_columns.h"

#include <cmath>

#include "tests/trainer/kernels/attention/attention_oracle.h"
#include "trainer/kernels/attention/attention.h"

namespace tycho {
namespace {

Tensor slopes(int64_t heads) { return at::pow(0.7, at::arange(heads, at::kDouble) + 1).to(at::kFloat); }

TEST(AlibiColumns, MultiplyToSlopeTimesPosition) {
  for (const int64_t seq : {1, 300, 65536}) {
    const Tensor slopes_H = slopes(6);
    const float scale = 0.08838834764f;
    const AlibiColumns columns = alibi_columns(slopes_H, scale, seq);
    const Tensor bias =
        at::matmul(as_double(columns.query_H8), as_double(columns.key_T8).t()) * static_cast<double>(scale);
    const Tensor wanted = as_double(slopes_H).unsqueeze(1) * at::arange(seq, at::kDouble);
    EXPECT_LE(((bias - wanted).abs() - wanted * 0x1p-23).max().item<double>(), 0) << seq;
  }
}

TEST(AlibiColumns, GiveAttentionItsBias) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const AttentionShape s = {2, 130, 6, 3, 16};
    AttentionShape wide = s;
    wide.head_dim += kAlibiColumns;
    const Tensor slopes_H = slopes(s.heads);
    ScoreRules rules = plain_rules(s), products = rules;
    rules.alibi_H = slopes_H.const_data_ptr<float>();
    rules.window = products.window = 90;
    const Tensor qkv = at::randn({s.batch * s.seq, 12 * s.head_dim}).to(type);
    const AttentionRows widened =
        with_alibi_columns(s, alibi_columns(slopes_H, rules.scale, s.seq), packed_rows(s, qkv));
    Tensor out = at::empty({s.batch * s.seq, s.heads * wide.head_dim}, qkv.options()),
           log_sum_exp = at::empty({s.batch, s.heads, s.seq});
    std::vector<Tensor> state;
    attention(wide, products, widened, {out, log_sum_exp, state});
    const Tensor heads = out.view({s.batch * s.seq, s.heads, wide.head_dim});
    const Tensor oracle = oracle_packed(s, rules, as_double(qkv));
    expect_near(heads.narrow(2, 0, s.head_dim).reshape(oracle.sizes()), oracle, 1e-5, 0x1p-7);
    EXPECT_EQ(heads.narrow(2, s.head_dim, kAlibiColumns).abs().max().item<double>(), 0);
  }
}

TEST(AlibiColumns, NameArgumentsThatDoNotFit) {
  EXPECT_EQ(error_of([] { alibi_columns(slopes(2), 1.0f, 65537); }),
            "[alibi] expected at most 65536 positions on a GPU, got 65537");
}

}  // namespace
}  // namespace tycho
