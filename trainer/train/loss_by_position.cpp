// Adds in double precision, on the device.
#include "trainer/train/loss_by_position.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "trainer/data/rows/batch.h"

namespace tycho {
namespace {

/// Adds the counts and means of sums_4T in columns whose names begin with `prefix`.
void add_columns(NamedTable& table, const std::string& prefix, const Tensor& sums_4T) {
  const std::string tokens = prefix + "tokens", loss = prefix + "mean_loss",
                    perplexity = prefix + "mean_perplexity";
  table.columns.insert(table.columns.end(), {tokens, loss, perplexity});
  const int64_t seq = sums_4T.size(1);
  const auto* sums = sums_4T.const_data_ptr<double>();
  for (int64_t position = 0; position < seq; ++position) {
    Json& row = table.rows[static_cast<size_t>(position)];
    const double weight = sums[seq + position];
    row[tokens] = static_cast<int64_t>(sums[position]);
    if (weight == 0) continue;
    row[loss] = sums[2 * seq + position] / weight;
    row[perplexity] = sums[3 * seq + position] / weight;
  }
}

}  // namespace

LossByPosition::LossByPosition(int64_t seq, const at::Device& device)
    : sums_(at::zeros({2, 4, seq}, at::TensorOptions().dtype(at::kDouble).device(device))) {}

void LossByPosition::add(const TokenLosses& tokens) {
  const Tensor has_target_N = tokens.targets_N.ne(kNoTarget);
  const Tensor one_N = has_target_N.to(at::kDouble), loss_N = tokens.losses_N.to(at::kDouble);
  const Tensor weight_N = tokens.weights_N.defined() ? tokens.weights_N.to(at::kDouble).abs() : one_N;
  const Tensor values_4N = at::stack({one_N, weight_N, loss_N, weight_N * (loss_N / weight_N).exp()})
                               .masked_fill_(has_target_N.logical_not().logical_or_(weight_N.eq(0)), 0);
  values_4N[0].copy_(one_N);
  sums_[0].index_add_(1, tokens.positions_N, values_4N);
  if (tokens.document_positions_N.defined()) sums_[1].index_add_(1, tokens.document_positions_N, values_4N);
}

void LossByPosition::sum_over(Communicator& ranks) { ranks.all_reduce(sums_); }

NamedTable LossByPosition::table() const {
  const Tensor sums = sums_.cpu();
  const int64_t seq = sums.size(2);
  NamedTable table = {"loss_by_position", "loss_by_position.jsonl", {"position"}, {}};
  for (int64_t position = 0; position < seq; ++position) table.rows.push_back({{"position", position}});
  add_columns(table, "", sums[0].contiguous());
  if (sums[1][0].any().item<bool>()) add_columns(table, "document_", sums[1].contiguous());
  return table;
}

}  // namespace tycho
