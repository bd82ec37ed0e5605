// Decides which rows take part in a pass, and which text each of them holds.
#include "trainer/models/decode_batch.h"

#include <algorithm>
#include <utility>

#include "trainer/kernels/host_copies.h"

namespace tycho {
namespace {

int64_t positions_of(const TextToGrow& text) { return std::ssize(text.prompt) + text.max_tokens; }

int64_t longest_of(const std::vector<TextToGrow>& texts) {
  int64_t longest = 1;
  for (const TextToGrow& text : texts) longest = std::max(longest, positions_of(text));
  return longest;
}

/// Returns the length beyond which rotations have other frequencies (longrope); nothing: they never do.
std::optional<int64_t> border_of(const DecoderSpec& spec) {
  std::optional<int64_t> border;
  for (const RotarySpec& rotary : spec.positions.rotary)
    if (rotary.scaling.type == RopeScaling::kLongrope) border = rotary.scaling.original_max_seq_len;
  return border;
}

}  // namespace

bool rotates_by_workspace(const DecoderSpec& spec) {
  return std::ranges::any_of(spec.positions.rotary, [](const RotarySpec& rotary) {
    const RopeScaling scaling = rotary.scaling.type;
    return scaling == RopeScaling::kDynamic || scaling == RopeScaling::kLongrope ||
           rotary.xpos_scale_base > 0;
  });
}

DecodeBatch::DecodeBatch(const ModelConfig& model, MakeDecoder make_decoder,
                         const std::vector<TextToGrow>& texts, NextToken next, int64_t most_positions)
    : make_decoder_(std::move(make_decoder)),
      texts_(texts),
      next_(std::move(next)),
      alone_(rotates_by_workspace(decoder_spec(model))),
      border_(border_of(decoder_spec(model))) {
  const int64_t longest = longest_of(texts), most = std::min(Decoder::kRowsOfSameBits, std::ssize(texts)),
                rows =
                    alone_ ? 1 : std::clamp<int64_t>(most_positions / longest, 1, std::max<int64_t>(most, 1));
  for (int64_t row = rows - 1; row >= 0; --row) free_rows_.push_back(row);
  decoder_ = make_decoder_(rows, longest);
}

void DecodeBatch::pass() {
  if (begun_ < texts_.size() && !free_rows_.empty()) return begin_text();
  if (!growing_.empty()) return grow();
  decoder_->begin_row(0, numbers_on(decoder_->device(), std::vector<int32_t>{0}));
}

void DecodeBatch::begin_text() {
  const size_t text = begun_++;
  const TextToGrow& begins = texts_[text];
  const bool within = border_ && std::ssize(begins.prompt) <= *border_;
  if (alone_) start_alone(within ? std::min(*border_, positions_of(begins)) : positions_of(begins));
  const int64_t row = free_rows_.back();
  const Tensor logits_1V = decoder_->begin_row(row, numbers_on(decoder_->device(), begins.prompt));
  if (const std::optional<int32_t> token = next_(text, logits_1V.select(0, 0))) {
    free_rows_.pop_back();
    growing_.push_back({row, text, *token});
    written_ = begins.prompt;
  }
}

void DecodeBatch::start_alone(int64_t num_positions) {
  decoder_.reset();  // two at a time would take the memory of two
  decoder_ = make_decoder_(1, num_positions);
}

Tensor DecodeBatch::next_logits(const std::vector<int64_t>& rows, const std::vector<int32_t>& tokens) {
  if (border_) {
    written_.push_back(tokens.front());
    if (std::ssize(written_) == *border_ + 1) {  // all tokens so far are rotated by the other frequencies
      start_alone(positions_of(texts_[growing_.front().text]));
      return decoder_->begin_row(rows.front(), numbers_on(decoder_->device(), written_));
    }
  }
  return decoder_->next_of_rows(rows, numbers_on(decoder_->device(), tokens));
}

void DecodeBatch::grow() {
  std::vector<int64_t> rows;
  std::vector<int32_t> tokens;
  for (const Growing& one : growing_) rows.push_back(one.row), tokens.push_back(one.last);
  const Tensor logits_RV = next_logits(rows, tokens);
  std::vector<Growing> still;
  for (size_t i = 0; i < growing_.size(); ++i) {
    const auto [row, text, last] = growing_[i];
    const std::optional<int32_t> token = next_(text, logits_RV.select(0, static_cast<int64_t>(i)));
    if (token)
      still.push_back({row, text, *token});
    else
      free_rows_.push_back(row);
  }
  growing_ = std::move(still);
}

}  // namespace tycho
