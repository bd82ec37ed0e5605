// Runs passes over embedding, blocks and head, with the keys and values of earlier ones in the cache.
#include "trainer/models/decoder.h"

#include <ATen/ops/empty.h>
#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/kernels/embedding.h"
#include "trainer/models/acquired_head.h"
#include "trainer/models/embedding_scale.h"
#include "trainer/models/shared_vocabulary.h"

namespace tycho {
namespace {

constexpr int64_t kChosenAtOnce = 512;  // rows of logits passed to DecoderLook::chosen

int64_t num_sequences(const std::vector<CachedRows>& rows) {
  int64_t count = 0;
  for (const CachedRows& one : rows) count += one.count;
  return count;
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, UnitStore& units, int64_t batch, int64_t num_positions,
                 at::ScalarType dtype, const at::Device& device, const ParallelRegion& region,
                 const PipelineStage& stage)
    : Decoder(decoder_spec(config), units, batch, num_positions, dtype, device, region, stage) {}

Decoder::Decoder(const DecoderSpec& spec, UnitStore& units, int64_t batch, int64_t num_positions,
                 at::ScalarType dtype, const at::Device& device, const ParallelRegion& region,
                 const PipelineStage& stage)
    : spec_(tp_spec(spec, region.shape())),
      layout_(decoder_layout(spec)),
      head_(spec_, layout_.vocab_size, region.of_whole_sequences()),
      stage_(stage),
      part_(stage.part(layout_.num_blocks)),
      units_(units),
      block_units_(layout_, units),
      num_positions_(num_positions),
      options_(at::TensorOptions().dtype(dtype).device(device)),
      blocks_(decoder_blocks(spec_, {batch, num_positions}, num_positions, device, head_.region)),
      length_B_(static_cast<size_t>(batch)) {
  TYCHO_CHECK(spec_.positions.learned == 0 || num_positions <= spec_.positions.learned,
              "[decoder] expected at most the {} positions of the model's table, got {}: shorten the prompt "
              "or ask for fewer tokens",
              spec_.positions.learned, num_positions);
  const auto options = options_.dtype(device.is_cpu() ? at::kFloat : dtype);
  // Each head's keys begin at a multiple of 64 bytes: the bits of MKL's products depend on the alignment of
  // operands.
  const int64_t aligned = (num_positions + 15) / 16 * 16;
  cache_.keys.resize(blocks_.size()), cache_.values.resize(blocks_.size());
  for (int64_t i = 0; i < layout_.num_blocks; ++i) {
    if (spec_.reuses_kv(i) || !part_.has_block(i)) continue;
    for (std::vector<Tensor>* side : {&cache_.keys, &cache_.values})
      (*side)[static_cast<size_t>(i)] =
          at::empty({batch, spec_.attention.kv_heads, aligned, spec_.attention.head_dim}, options);
  }
}

Tensor Decoder::next_logits(const Tensor& tokens_N, const DecoderLook& look) {
  return run({{0, std::ssize(length_B_), length()}}, tokens_N, look);
}

Tensor Decoder::begin_row(int64_t row, const Tensor& tokens_T) {
  length_B_.at(static_cast<size_t>(row)) = 0;
  return run({{row, 1, 0}}, tokens_T, {});
}

void Decoder::keep_first(int64_t row, int64_t count) {
  int64_t& length = length_B_.at(static_cast<size_t>(row));
  TYCHO_CHECK(count >= 0 && count <= length, "[decoder] expected to keep 0 to {} tokens, got {}", length,
              count);
  length = count;
}

Tensor Decoder::next_of_rows(const std::vector<int64_t>& rows, const Tensor& tokens_R) {
  TYCHO_CHECK(!rows.empty() && tokens_R.numel() == std::ssize(rows),
              "[decoder] expected a token for each of one or more rows, got {} for {}", tokens_R.numel(),
              rows.size());
  std::vector<CachedRows> pass;
  for (const int64_t row : rows) pass.push_back({row, 1, length_B_.at(static_cast<size_t>(row))});
  return run(std::move(pass), tokens_R, {});
}

Tensor Decoder::run(std::vector<CachedRows> rows, const Tensor& tokens_N, const DecoderLook& look) {
  const int64_t num_tokens = tokens_N.numel(), sequences = num_sequences(rows), seq = num_tokens / sequences;
  for (const CachedRows& one : rows) {
    TYCHO_CHECK(one.length + seq <= num_positions_,
                "[decoder] expected room for {} more tokens after {}, the cache has {}", seq, one.length,
                num_positions_);
    for (int64_t row = one.first; row < one.first + one.count; ++row)
      length_B_.at(static_cast<size_t>(row)) = one.length + seq;
  }
  cache_.pass = std::move(rows);
  std::vector<Tensor> inputs(blocks_.size());  // inputs of blocks, while later ones may project from them
  Tensor x_ND;
  for (size_t c = 0; c < part_.chunks.size(); ++c) {
    x_ND = part_.has_embedding(c) ? embed(tokens_N, seq) : at::empty({num_tokens, layout_.width}, options_);
    stage_.receive_input(c, x_ND);
    x_ND = run_chunk(part_.chunks[c], x_ND, inputs, look);
    stage_.send_output(c, x_ND);
  }
  if (look.streams != nullptr && part_.is_last()) look.streams->push_back(x_ND.clone());
  if (look.streams != nullptr) share_streams(*look.streams, x_ND);
  // Every position counts as the last one of its own sequence.
  if (!look.rows_R.defined()) return head_logits(x_ND, look.every_position ? num_tokens : sequences);
  for (int64_t begin = 0; begin < look.rows_R.numel(); begin += kChosenAtOnce) {
    const int64_t rows_at_once = std::min(kChosenAtOnce, look.rows_R.numel() - begin);
    const Tensor chosen_PD = x_ND.index_select(0, look.rows_R.narrow(0, begin, rows_at_once));
    look.chosen(head_logits(chosen_PD, rows_at_once));
  }
  return {};
}

Tensor Decoder::head_logits(const Tensor& x_ND, int64_t num_sequences) {
  Tensor logits = at::empty({num_sequences, layout_.vocab_size}, options_.dtype(at::kFloat));
  if (part_.is_last()) {
    const AcquiredHead head(units_, spec_, Pass::kGeneration);
    logits = head_last_logits(head_, head.params(), x_ND, num_sequences, layout_.vocab_size);
  }
  stage_.share(logits, part_.num_stages - 1);
  return logits;
}

Tensor Decoder::embed(const Tensor& tokens_N, int64_t seq) {
  const Views& table = units_.acquire(0, Pass::kGeneration);
  Tensor x_ND = at::empty({tokens_N.numel(), layout_.width}, options_);
  int64_t done = 0;
  for (const CachedRows& rows : cache_.pass) {
    LearnedPositions positions;
    if (spec_.positions.learned > 0) positions = {table[embedding_param::kPositions], seq, rows.length};
    const int64_t count = rows.count * seq;
    const Tensor tokens = tokens_N.narrow(0, done, count);
    Tensor x = x_ND.narrow(0, done, count);
    if (head_.region.is_shared())
      embed_own(tokens, spec_.first_vocab, table[embedding_param::kTable], positions, x);
    else
      embedding(tokens, table[embedding_param::kTable], x, positions);
    done += count;
  }
  if (head_.region.is_shared()) head_.region.leave(x_ND, x_ND);
  if (const double scale = embedding_scale(spec_, x_ND.scalar_type()); scale != 1) x_ND.mul_(scale);
  units_.release(0, Pass::kGeneration);
  return x_ND;
}

Tensor Decoder::run_chunk(const StagePart::Chunk& chunk, Tensor x_ND, std::vector<Tensor>& inputs,
                          const DecoderLook& look) {
  for (int64_t i = chunk.begin; i < chunk.end; ++i) {
    if (spec_.shares_x()) inputs[static_cast<size_t>(i)] = x_ND;
    if (look.streams != nullptr) look.streams->push_back(x_ND.clone());
    cache_.attention = i == look.attention_block ? look.attention : nullptr;
    x_ND = blocks_[static_cast<size_t>(i)].forward_cached(block_units_.acquire(i, Pass::kGeneration), x_ND,
                                                          inputs[static_cast<size_t>(spec_.block(i).x_block)],
                                                          cache_);
    block_units_.release(i, Pass::kGeneration);
  }
  return x_ND;
}

void Decoder::share_streams(std::vector<Tensor>& streams, const Tensor& like) const {
  if (!stage_.is_shared()) return;
  const std::vector<Tensor> own = std::exchange(streams, {});
  size_t next = 0;
  for (int64_t i = 0; i <= layout_.num_blocks; ++i) {
    const bool is_own = part_.has_block(i) || (i == layout_.num_blocks && part_.is_last());
    streams.push_back(is_own ? own[next++] : at::empty(like.sizes(), like.options()));
    // Only the rank that has the block knows its stage.
    stage_.share(streams.back(), -stage_.least(is_own ? -part_.stage : 0));
  }
}

}  // namespace tycho
