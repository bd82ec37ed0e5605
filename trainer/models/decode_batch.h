// Generates several texts at once, each in a row of a decoder. A row whose text has ended takes the next
// text.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/tensor.h"
#include "trainer/models/decoder.h"

namespace tycho {

/// Begin of a text, and the most tokens that are added to it.
struct TextToGrow {
  std::vector<int32_t> prompt;  // at least one token
  int64_t max_tokens = 1;
};

/// True if the rotations of a text depend on the number of positions of its decoder, so that keys of a
/// shorter text cannot be used for a longer one.
bool rotates_by_workspace(const DecoderSpec& spec);

class DecodeBatch {
 public:
  /// Returns the token after text number `text`, from logits_V, fp32 on the device; nothing: the text has
  /// ended.
  using NextToken = std::function<std::optional<int32_t>(size_t text, const Tensor& logits_V)>;
  using MakeDecoder = std::function<std::unique_ptr<Decoder>(int64_t batch, int64_t num_positions)>;

  /// Generates up to Decoder::kRowsOfSameBits texts at once, so that on a CPU each is, to the bit, what it
  /// would be alone; fewer where they need more than `most_positions`. `texts` must outlive this object; no
  /// text becomes longer than its max_tokens allow.
  DecodeBatch(const ModelConfig& model, MakeDecoder make_decoder, const std::vector<TextToGrow>& texts,
              NextToken next, int64_t most_positions = 8192);

  bool done() const { return begun_ == texts_.size() && growing_.empty(); }
  /// Runs one pass through the model: the prompt of the next text where a row is free, else one more token of
  /// each growing text. After the last text, runs a token whose result is unused, because other ranks may
  /// wait for this one's share of the weights. Collective on the ranks along tp and pp.
  void pass();

 private:
  struct Growing {
    int64_t row;
    size_t text;
    int32_t last;
  };
  void begin_text();
  void grow();
  /// Makes the decoder of a text that has its own.
  void start_alone(int64_t num_positions);
  /// Returns the logits after one more token of each row.
  Tensor next_logits(const std::vector<int64_t>& rows, const std::vector<int32_t>& tokens);

  MakeDecoder make_decoder_;
  const std::vector<TextToGrow>& texts_;
  NextToken next_;
  bool alone_;                     // each text has its own decoder
  std::optional<int64_t> border_;  // length beyond which a text is computed again, with other rotations
  std::vector<int32_t> written_;   // tokens so far of the text that grows, where there is a border
  std::unique_ptr<Decoder> decoder_;
  size_t begun_ = 0;  // number of texts that were begun
  std::vector<int64_t> free_rows_;
  std::vector<Growing> growing_;
};

}  // namespace tycho
