// Texts of a batch are filled up at their ends, which earlier tokens do not see.
#include "trainer/eval/scorer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/max.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/comm/collective_strings.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/kernels/tensor.h"
#include "trainer/models/decoder.h"

namespace tycho {
namespace {

constexpr int64_t kFigures = 4;  // of a ContinuationScore

/// Items that pass through the model together, and the length of the longest without its last token.
struct AskedBatch {
  std::vector<size_t> items;
  int64_t length = 0;
};

std::vector<AskedBatch> batches_of(const std::vector<Continuation>& all, int64_t batch_tokens) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return all[a].tokens.size() > all[b].tokens.size(); });
  std::vector<AskedBatch> batches;
  for (const size_t item : order) {
    const bool fits =
        !batches.empty() &&
        static_cast<int64_t>(batches.back().items.size() + 1) * batches.back().length <= batch_tokens;
    if (!fits) batches.push_back({{}, static_cast<int64_t>(all[item].tokens.size()) - 1});
    batches.back().items.push_back(item);
  }
  return batches;
}

/// The input tokens, the rows whose logits are needed, and the tokens after these rows.
struct AskedRows {
  std::vector<int32_t> tokens;          // [B * T]
  std::vector<int64_t> rows, followed;  // [R]
};

AskedRows rows_of(const std::vector<Continuation>& all, const AskedBatch& batch) {
  AskedRows made;
  made.tokens.assign(batch.items.size() * static_cast<size_t>(batch.length), 0);
  for (size_t b = 0; b < batch.items.size(); ++b) {
    const Continuation& one = all[batch.items[b]];
    const size_t begin = b * static_cast<size_t>(batch.length), inputs = one.tokens.size() - 1;
    std::copy_n(one.tokens.begin(), inputs, made.tokens.begin() + static_cast<std::ptrdiff_t>(begin));
    for (size_t t = inputs - static_cast<size_t>(one.num_asked); t < inputs; ++t) {
      made.rows.push_back(static_cast<int64_t>(begin + t));
      made.followed.push_back(one.tokens[t + 1]);
    }
  }
  return made;
}

Tensor indices_on(const at::Device& device, const std::vector<int64_t>& values) {
  return at::from_blob(const_cast<int64_t*>(values.data()), {static_cast<int64_t>(values.size())},
                       at::TensorOptions().dtype(at::kLong))
      .clone()
      .to(device);
}

/// Returns fp64 [R, 3] on the host: the logarithm of the probability of the next token, that of the likeliest
/// token, and whether they are the same.
Tensor row_figures(const AskedModel& asked, const AskedRows& made, const AskedBatch& batch) {
  Decoder decoder(asked.model, asked.units, static_cast<int64_t>(batch.items.size()), batch.length,
                  asked.dtype, asked.device, asked.region, asked.stage);
  const Tensor followed_R = indices_on(asked.device, made.followed);
  std::vector<Tensor> parts;
  int64_t done = 0;
  DecoderLook look;
  look.rows_R = indices_on(asked.device, made.rows);
  look.chosen = [&](const Tensor& logits_PV) {
    const Tensor followed_P = followed_R.narrow(0, done, logits_PV.size(0));
    const Tensor whole_P = logits_PV.logsumexp(1).to(at::kDouble);
    const auto [top_P, best_P] = logits_PV.max(1);
    const Tensor logit_P = logits_PV.gather(1, followed_P.unsqueeze(1)).squeeze(1).to(at::kDouble);
    parts.push_back(at::stack(
        {logit_P - whole_P, top_P.to(at::kDouble) - whole_P, best_P.eq(followed_P).to(at::kDouble)}, 1));
    done += logits_PV.size(0);
  };
  decoder.next_logits(numbers_on(asked.device, made.tokens), look);
  return joined(parts).cpu().contiguous();
}

/// Writes a row of `scores`, fp64 [items, kFigures], for each item of the batch.
void score_batch(const AskedModel& asked, const std::vector<Continuation>& all, const AskedBatch& batch,
                 double* scores) {
  const Tensor figures = row_figures(asked, rows_of(all, batch), batch);
  const double* row = figures.data_ptr<double>();
  for (const size_t item : batch.items) {
    double logprob = 0, probability = 0, least_top = 1;
    bool is_greedy = true;
    const int64_t count = all[item].num_asked;
    for (int64_t i = 0; i < count; ++i, row += 3) {
      logprob += row[0];
      probability += std::exp(row[0]);
      least_top = std::min(least_top, std::exp(row[1]));
      is_greedy = is_greedy && row[2] != 0;
    }
    double* const out = scores + item * kFigures;
    out[0] = logprob, out[1] = is_greedy ? 1 : 0, out[2] = probability / static_cast<double>(count);
    out[3] = least_top;
  }
}

}  // namespace

std::optional<std::vector<ContinuationScore>> score(const AskedModel& asked,
                                                    const std::vector<Continuation>& continuations,
                                                    const std::atomic<int>& stop) {
  const std::vector<AskedBatch> batches = batches_of(continuations, asked.batch_tokens);
  const auto count = static_cast<int64_t>(continuations.size());
  Tensor scores = at::zeros({count, kFigures}, at::TensorOptions().dtype(at::kDouble));
  const auto ranks = static_cast<size_t>(asked.data_ranks.size()),
             rank = static_cast<size_t>(asked.data_ranks.rank());
  for (size_t first = 0; first < batches.size(); first += ranks) {
    if (first_signal(asked.world, stop) != 0) return std::nullopt;
    // A rank without a batch computes all the same: the others may wait for its share of the weights.
    if (first + rank < batches.size())
      score_batch(asked, continuations, batches[first + rank], scores.data_ptr<double>());
    else
      row_figures(asked, rows_of(continuations, batches.back()), batches.back());
  }
  Tensor all_scores = scores.to(asked.device);  // one rank has a number, the others zero
  asked.data_ranks.all_reduce(all_scores);
  scores = all_scores.cpu();
  asked.world.check();
  std::vector<ContinuationScore> result;
  for (const double* row = scores.data_ptr<double>(); std::ssize(result) < count; row += kFigures) {
    if (std::isnan(row[0]))
      result.push_back({.logprob = NAN});
    else
      result.push_back({row[0], row[1] != 0, row[2], row[3]});
  }
  return result;
}

}  // namespace tycho
