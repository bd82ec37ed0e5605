// A text that grows over several prompts: what they have in common is computed once.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/models/decoder.h"
#include "trainer/recipe/train_config.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

class KeptText {
 public:
  /// `units` must outlive this object. Not for models whose rotations depend on the length of a text
  /// (rotates_by_workspace).
  KeptText(const TrainConfig& config, UnitStore& units, const at::Device& device)
      : config_(config), units_(units), device_(device) {}

  /// Replaces the text by `ids`, and computes the tokens after the longest common beginning. Returns fp32
  /// logits [V] after the last one; nullopt when `stop` is not 0 before the end. `room`: the tokens that
  /// add() may add.
  std::optional<Tensor> become(const std::vector<int32_t>& ids, int64_t room, const std::atomic<int>& stop);
  /// Adds a token. Returns fp32 logits [V] after it.
  Tensor add(int32_t id);
  /// Number of tokens that the last become() did not compute.
  int64_t num_reused() const { return num_reused_; }

 private:
  const TrainConfig& config_;
  UnitStore& units_;
  at::Device device_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<int32_t> ids_;  // tokens whose keys and values the decoder has
  int64_t num_reused_ = 0;
};

}  // namespace tycho
