// Texts that grow side by side, each in a row of a decoder. A row whose text has ended takes the next one.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/families/config.h"
#include "trainer/kernels/tensor.h"
#include "trainer/models/decoder.h"

namespace tycho {

/// How a text begins, and how much is written after that at most.
struct TextToGrow {
  std::vector<int32_t> prompt;  // a token or more
  int64_t max_tokens = 1;
};

class GrowingTexts {
 public:
  /// The token after text number `text`, from logits_V, fp32 on the device; nothing: the text has ended.
  using NextToken = std::function<std::optional<int32_t>(size_t text, const Tensor& logits_V)>;
  using MakeDecoder = std::function<std::unique_ptr<Decoder>(int64_t batch, int64_t num_positions)>;

  /// Up to Decoder::kRowsOfSameBits texts grow at once, so that on a CPU each is, to the bit, what it would
  /// be alone; fewer where they need more than `most_positions`. `texts` outlive it; no text is longer than
  /// its max_tokens allow.
  GrowingTexts(const ModelConfig& model, MakeDecoder make_decoder, const std::vector<TextToGrow>& texts,
               NextToken next, int64_t most_positions = 8192);

  bool done() const { return begun_ == texts_.size() && growing_.empty(); }
  /// One pass through the model: the prompt of the next text where a row is free, else a token more of each
  /// text that grows; after the last one a token that nobody reads, since other ranks may wait for this one's
  /// share of the weights. Collective on the ranks along tp and pp.
  void pass();

 private:
  struct Growing {
    int64_t row;
    size_t text;
    int32_t last;
  };
  void begin_text();
  void grow();

  MakeDecoder make_decoder_;
  const std::vector<TextToGrow>& texts_;
  NextToken next_;
  bool alone_;  // each text has a decoder of its own
  std::unique_ptr<Decoder> decoder_;
  size_t begun_ = 0;  // texts
  std::vector<int64_t> free_rows_;
  std::vector<Growing> growing_;
};

}  // namespace tycho
