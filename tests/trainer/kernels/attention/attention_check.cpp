// Rules point to the host; attention is given theirs on the device.
#include "tests/trainer/kernels/attention/attention_check.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace tycho {
namespace {

/// Spans of a whole shape's tokens as the queries of a shape of their own.
AttentionShape cut_shape(const AttentionShape& whole, TokenSpan early, TokenSpan late) {
  AttentionShape cut = whole;
  cut.seq = early.count + late.count, cut.keys = whole.seq, cut.early = early, cut.late = late;
  return cut;
}

/// Pairs of spans that name every token once, in as many parts as two `pairs`.
std::vector<AttentionShape> cuts(const AttentionShape& whole, int64_t pairs) {
  std::vector<AttentionShape> all;
  const auto start = [&](int64_t part) { return part * whole.seq / (2 * pairs); };
  const auto span = [&](int64_t part) { return TokenSpan{start(part), start(part + 1) - start(part)}; };
  for (int64_t i = 0; i < pairs; ++i) {
    const AttentionShape cut = cut_shape(whole, span(i), span(2 * pairs - 1 - i));
    if (cut.seq > 0) all.push_back(cut);
  }
  return all;
}

/// Inputs of a whole shape, [tokens, ...], and what autograd says of them.
struct WholeCase {
  ScoreRules rules;
  int64_t q = 0, kv = 0, tokens = 0;  // columns of q, columns of k and v, rows
  Tensor qkv, dout, out, dqkv;
};

/// Calls body(a case) for each of the rules.
template <class Body>
void for_every_rule(const AttentionShape& s, at::ScalarType type, bool flash_3, const Body& body) {
  at::manual_seed(4);
  WholeCase whole;
  whole.q = s.heads * s.head_dim, whole.kv = 2 * s.kv_heads * s.head_dim, whole.tokens = s.batch * s.seq;
  whole.qkv = at::randn({whole.tokens, whole.q + whole.kv}).to(type);
  whole.dout = at::randn({whole.tokens, whole.q}).to(type);
  const EveryRule every(s);
  for (const ScoreRules& rules : every.rules()) {
    whole.rules = rules, whole.rules.flash_3 = flash_3;
    Tensor leaf_qkv = leaf(whole.qkv);
    whole.out = oracle_packed(s, whole.rules, leaf_qkv);
    whole.out.backward(as_double(whole.dout));
    whole.dqkv = leaf_qkv.grad();
    body(std::as_const(whole));
  }
}

}  // namespace

OnDevice::OnDevice(const AttentionShape& s, const ScoreRules& host, const at::Device& device) : rules(host) {
  if (host.alibi_H) {
    slopes_H = at::tensor(at::ArrayRef<float>(host.alibi_H, s.heads), at::kFloat).to(device);
    rules.alibi_H = slopes_H.const_data_ptr<float>();
    flash.alibi = alibi_columns(slopes_H, rules.scale, num_keys(s));
  }
  if (host.document_BT) {
    const int64_t keys = num_keys(s);
    const Tensor number_N = at::tensor(at::ArrayRef<int32_t>(host.document_BT, s.batch * keys), at::kInt);
    using Spans = std::array<TokenSpan, 2>;
    flash.documents = documents_on(device, number_N, keys,
                                   s.keys > 0 ? std::optional(Spans{s.early, s.late}) : std::nullopt);
    rules.document_BT = flash.documents.number_N.const_data_ptr<int32_t>();
  }
}

void expect_equals_autograd(const AttentionShape& s, const ScoreRules& rules, at::ScalarType type,
                            const at::Device& device, bool repeats) {
  const OnDevice on(s, rules, device);
  std::vector<Tensor> state;
  const AttentionPair pair = {
      [&](const Tensor& qkv, Tensor& out, Tensor& log_sum_exp) {
        attention(s, on.rules, packed_rows(s, qkv), {out, log_sum_exp, state}, on.flash);
      },
      [&](const Tensor& qkv, const Tensor& out, const Tensor& log_sum_exp, const Tensor& dout, Tensor& dqkv) {
        Tensor kept_out = out, kept_log_sum_exp = log_sum_exp;
        attention_backward(s, on.rules, packed_rows(s, qkv), {kept_out, kept_log_sum_exp, state}, dout,
                           packed_rows(s, dqkv), on.flash);
      }};
  expect_equals_autograd(s, rules, type, pair, device, repeats);
}

void expect_spans_equal_whole(const AttentionShape& s, at::ScalarType type, const at::Device& device,
                              bool flash_3) {
  for_every_rule(s, type, flash_3, [&](const WholeCase& whole) {
    const auto& [rules, q, kv, tokens, qkv, dout, out, dqkv] = whole;
    for (const int64_t pairs : {2, 3}) {
      Tensor gradient = at::zeros({s.batch, s.seq, q + kv}, at::kDouble);
      for (const AttentionShape& cut : cuts(s, pairs)) {
        const Tensor position_T = query_positions(cut);
        const auto take = [&](const Tensor& x) {
          return x.reshape({s.batch, s.seq, q}).index_select(1, position_T).view({s.batch * cut.seq, q});
        };
        const OnDevice on(cut, rules, device);
        const AttentionRows rows = {take(qkv.narrow(1, 0, q)).to(device), qkv.to(device).narrow(1, q, kv)};
        const AttentionRows given = {at::full_like(rows.q_NE, 7.0),
                                     at::full({tokens, kv}, 7.0, rows.kv.options())};
        AttentionMemory saved(cut, rows.q_NE);
        attention(cut, on.rules, rows, saved, on.flash);
        expect_near(saved.out_NE, take(out), 1e-5, 0x1p-7);
        attention_backward(cut, on.rules, rows, saved, take(dout).to(device), given, on.flash);
        gradient.narrow(2, 0, q).index_copy_(1, position_T,
                                             as_double(given.q_NE).view({s.batch, cut.seq, q}));
        gradient.narrow(2, q, kv).add_(as_double(given.kv).view({s.batch, s.seq, kv}));
      }
      expect_near(gradient.view({tokens, q + kv}).to(type), dqkv, 2e-5, 0x1p-5);
    }
  });
}

void expect_parts_equal_whole(const AttentionShape& s, at::ScalarType type, const at::Device& device,
                              bool flash_3) {
  const auto take = [&](const Tensor& x, const Tensor& position_T) {
    return x.reshape({s.batch, s.seq, x.size(1)}).index_select(1, position_T).view({-1, x.size(1)});
  };
  for_every_rule(s, type, flash_3, [&](const WholeCase& whole) {
    const auto& [rules, q, kv, tokens, qkv, dout, out, dqkv] = whole;
    Tensor gradient = at::zeros({s.batch, s.seq, q + kv}, at::kDouble);
    for (const AttentionShape& cut : cuts(s, 3)) {
      const Tensor position_T = query_positions(cut);
      const OnDevice on(cut, rules, device);
      const Tensor q_NE = take(qkv.narrow(1, 0, q), position_T).to(device),
                   own_dout = take(dout, position_T).to(device);
      AttentionMemory saved(cut, q_NE);
      const Tensor sum_NE = at::zeros(q_NE.sizes(), q_NE.options().dtype(at::kFloat));
      saved.out_NE = sum_NE, saved.log_sum_exp_BHT.fill_(-INFINITY);
      std::vector<AttentionShape> parts;
      std::vector<Tensor> kv_of;
      for (const AttentionShape& other : cuts(s, 3)) {
        AttentionShape part = cut;
        part.early_keys = other.early, part.late_keys = other.late;
        if (!part.is_part()) part.early_keys = other.late, part.late_keys = {};
        parts.push_back(part);
        kv_of.push_back(take(qkv.narrow(1, q, kv), key_positions(part)).to(device));
        attention(part, on.rules, {q_NE, kv_of.back()}, saved, on.flash);
      }
      expect_near(sum_NE.to(type), take(out, position_T), 1e-5, 0x1p-6);
      saved.out_NE = sum_NE.to(type);
      const Tensor dq_NE = at::zeros(sum_NE.sizes(), sum_NE.options());
      for (size_t i = 0; i < parts.size(); ++i) {
        const Tensor dkv = at::full(kv_of[i].sizes(), 7.0, sum_NE.options());
        attention_backward(parts[i], on.rules, {q_NE, kv_of[i]}, saved, own_dout, {dq_NE, dkv}, on.flash);
        Tensor of_keys = gradient.narrow(2, q, kv);
        of_keys.index_add_(1, key_positions(parts[i]), as_double(dkv).view({s.batch, -1, kv}));
      }
      gradient.narrow(2, 0, q).index_copy_(1, position_T, as_double(dq_NE).view({s.batch, cut.seq, q}));
    }
    expect_near(gradient.view({tokens, q + kv}).to(type), dqkv, 2e-5, 0x1p-5);
  });
}

}  // namespace tycho
