// Packs documents into samples of equal length, by the rules of LLM Foundry's ConcatTokensDataset.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace tycho {

/// Appends documents to a buffer, and emits its tokens whenever they fill a sample. Tokens that are left at
/// the end fill no sample and are dropped.
class TokenPacker {
 public:
  struct Rules {
    int64_t sample_tokens = 0;
    std::vector<int32_t> bos, eos;  // put before and after every document
    bool no_wrap = false;           // drop the tokens of an addition that do not fit into the sample
  };
  TokenPacker(Rules rules, std::function<void(std::span<const int32_t>)> emit);

  /// Adds a whole document, as ConcatTokensDataset adds those of JSONL.
  void add_document(std::span<const int32_t> tokens);
  /// Adds a part of a document, which begins or ends with it, as LLM Foundry adds text files: without
  /// wrapping, eos is kept for the next sample. A document without any text has no tokens of its own.
  void add_part(std::span<const int32_t> tokens, bool begins, bool ends);
  /// Call after the last document.
  void finish() { drain(); }

  /// State from which another packer with the same rules continues.
  struct State {
    std::vector<int32_t> rest;  // tokens that are not emitted yet: at most a sample
    int64_t num_tokens = 0, num_samples = 0;
  };
  const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

  int64_t num_tokens() const {
    return state_.num_tokens;
  }  // all tokens that were added, bos and eos
     // included
  int64_t num_samples() const { return state_.num_samples; }
  int64_t dropped_tokens() const { return num_tokens() - num_samples() * rules_.sample_tokens; }

 private:
  void append(std::span<const int32_t> tokens);
  void drain();
  void emit_sample();

  Rules rules_;
  std::function<void(std::span<const int32_t>)> emit_;
  State state_;
};

}  // namespace tycho
