// Sums losses in fp64 over all ranks; short last passes are padded with ignored targets.
#include "trainer/eval/evaluate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <algorithm>
#include <chrono>
#include <numeric>

#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/expression/loss_expression.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/recipe/batch_width.h"

namespace tycho {
namespace {

int64_t sequences_to_take(int64_t num_samples, int64_t max_sequences) {
  return max_sequences > 0 ? std::min(num_samples, max_sequences) : num_samples;
}

/// Names what Evaluator::sums() has added up.
EvalSums named_sums(const std::vector<std::string>& terms, const double* totals) {
  const double* const others = totals + terms.size() + 1;
  EvalSums sums = {.loss = totals[0],
                   .weight = others[2],
                   .tokens = static_cast<int64_t>(others[3]),
                   .nats = others[0],
                   .bytes = others[1]};
  if (terms.empty()) return sums;
  sums.loss = 0;
  sums.named[kCrossEntropyName] = totals[0];
  for (size_t i = 0; i < terms.size(); ++i)
    sums.loss += totals[i + 1], sums.named[term_output(terms[i])] = totals[i + 1];
  return sums;
}

}  // namespace

// Special tokens have no bytes, as in nanochat's token_bytes; neither have ids that the tokenizer lacks.
TokenTexts token_texts(const std::string& tokenizer, int64_t vocab_size, const at::Device& device) {
  if (tokenizer.empty()) return {};
  const std::unique_ptr<Tokenizer> opened = load_tokenizer(tokenizer);
  std::vector<double> bytes(static_cast<size_t>(vocab_size));
  for (int32_t id = 0; id < std::min<int64_t>(vocab_size, opened->size()); ++id)
    if (!opened->is_special(id))
      bytes[static_cast<size_t>(id)] = static_cast<double>(opened->token_bytes(id).size());
  return {tokenizer, at::tensor(bytes, at::kDouble).to(device)};
}

Evaluator::Evaluator(const DataConfig& data, int64_t max_sequences, BatchShape shape, Model& model,
                     Communicator& data_ranks, Communicator& loss_ranks, Communicator& world,
                     const at::Device& device, const OpenedData& opened, const TokenTexts& texts,
                     const std::string& key)
    : place_(data.place()),
      shape_(shape),
      model_(model),
      data_ranks_(data_ranks),
      loss_ranks_(loss_ranks),
      world_(world),
      device_(device),
      data_(open_rows(
          data, {shape.seq, model.layout().vocab_size, texts.tokenizer, key, model.loss().reads_weights()},
          opened)),
      num_sequences_(sequences_to_take(data_->num_samples(), max_sequences)),
      bytes_V_(texts.bytes_V) {}

std::optional<EvalResult> Evaluator::evaluate(const std::atomic<int>& stop) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string>& terms = model_.loss().terms();
  const int64_t num_losses = model_.loss().num_losses();
  Tensor total = at::zeros({num_losses + 4}, at::TensorOptions().dtype(at::kDouble).device(device_));
  for (int64_t begin = 0; begin < num_sequences_; begin += shape_.batch * data_ranks_.size()) {
    if (first_signal(world_, stop) != 0) return std::nullopt;  // every rank leaves at the same place
    total += sums(begin);
  }
  loss_ranks_.all_reduce(total);
  const Tensor totals = total.cpu();
  world_.check();
  const EvalSums sums = named_sums(terms, totals.const_data_ptr<double>());
  if (sums.tokens == 0)
    fail(ExitCode::kUnusable,
         "[eval] no token of {} has a target: sequences of {} tokens are too short to predict anything",
         place_, shape_.seq);
  if (sums.weight == 0)
    fail(ExitCode::kUnusable, "[eval] expected weights above 0 of the targets of {}, got only zeros", place_);
  return eval_result(sums, seconds_since(start));
}

std::vector<uint32_t> Evaluator::samples_from(int64_t begin, int64_t count) const {
  std::vector<uint32_t> samples(static_cast<size_t>(std::clamp<int64_t>(num_sequences_ - begin, 0, count)));
  std::iota(samples.begin(), samples.end(), static_cast<uint32_t>(begin));
  return samples;
}

// nanochat's definition (evaluate_bpb): a token without bytes does not count, its loss neither. That loss may
// be NaN, so it is left out, not multiplied by 0.
std::pair<Tensor, Tensor> Evaluator::text_sums(const ContextRegion& context, const Tensor& entropies_N,
                                               const Tensor& targets_N, const Tensor& weights_N) const {
  const Tensor none = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device_));
  if (!bytes_V_.defined()) return {none, none};
  const Tensor ids_N = targets_N.view({-1}).to(at::kLong);
  Tensor bytes_N = bytes_V_.index_select(0, ids_N.clamp_min(0)).mul_(ids_N.ge(0));
  if (weights_N.defined()) bytes_N = bytes_N * weights_N.view({-1}).abs();
  const Tensor is_text_N = context.own(bytes_N).gt(0);
  return {at::where(is_text_N, entropies_N.to(at::kDouble), none).sum(), bytes_N.sum()};
}

// A rank without sequences computes all the same: the others may wait for its share of the weights.
Tensor Evaluator::sums(int64_t begin) {
  const std::vector<uint32_t> samples = samples_from(begin + shape_.batch * data_ranks_.rank(), shape_.batch);
  const int64_t width = batch_width(data_->trimmed_lengths(),
                                    samples_from(begin, shape_.batch * data_ranks_.size()), shape_.seq);
  const Batch batch = data_->read_trimmed(samples, shape_.batch, width);
  const auto on_device = [&](const auto& numbers) { return numbers_on(device_, numbers); };
  const Tensor targets_N = batch.targets.visit(on_device), weights_N = numbers_on(device_, batch.weights);
  Model& model = model_.at_width(batch.seq_len);
  const Tensor& losses_RN = model.all_losses({.tokens_N = batch.tokens.visit(on_device),
                                              .targets_N = targets_N,
                                              .documents_N = numbers_on(at::kCPU, batch.documents),
                                              .weights_N = weights_N});
  // Once for each sequence: ranks along cp and stages read the same ones.
  const bool counts = model_.part().is_last() && model_.context().shape().rank == 0;
  const auto options = at::TensorOptions().dtype(at::kDouble).device(device_);
  std::vector<Tensor> sums;
  for (const Tensor& losses_N : losses_RN.unbind(0)) sums.push_back(losses_N.sum(at::kDouble));
  const auto [nats, bytes] = text_sums(model.context(), losses_RN.select(0, 0), targets_N, weights_N);
  sums.push_back(nats);
  sums.push_back(counts ? bytes : at::zeros_like(bytes));
  sums.push_back(at::scalar_tensor(counts ? weight_of(batch) : 0.0, options));
  sums.push_back(at::scalar_tensor(counts ? static_cast<double>(batch.valid_tokens) : 0.0, options));
  return at::stack(sums);
}

}  // namespace tycho
