// Documents into samples of equal length, by the rules of LLM Foundry's ConcatTokensDataset.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tycho {

/// Documents follow one another in a buffer; whenever it holds a sample's tokens they are emitted. What is
/// left at the end fills no sample and is dropped.
class TokenPacker {
 public:
  struct Rules {
    int64_t sample_tokens = 0;
    std::vector<int32_t> bos, eos;  // put before and after every document
    bool no_wrap = false;           // what follows an emitted sample in its document is dropped too
  };
  TokenPacker(Rules rules, std::function<void(std::span<const int32_t>)> emit);

  /// A part of a document, which begins or ends with it.
  void add(const std::vector<int32_t>& tokens, bool begins, bool ends);

  int64_t num_tokens() const { return num_tokens_; }  // all that were added, bos and eos included
  int64_t num_samples() const { return num_samples_; }
  int64_t dropped_tokens() const { return num_tokens_ - num_samples_ * rules_.sample_tokens; }

 private:
  void append(std::span<const int32_t> tokens);

  Rules rules_;
  std::function<void(std::span<const int32_t>)> emit_;
  std::vector<int32_t> buffer_;
  bool skips_document_ = false;
  int64_t num_tokens_ = 0, num_samples_ = 0;
};

}  // namespace tycho
