// Rewinds the decoder to what two texts have in common. The cache grows by doubling, for a text of a few
// tokens should not take the memory of the longest one.
#include "trainer/eval/kept_text.h"

#include <algorithm>
#include <bit>

#include "trainer/kernels/host_copies.h"

namespace tycho {
namespace {

constexpr int64_t kFirstPositions = 1024;
constexpr int64_t kTokensAtOnce = 512;  // between looks for a stop

}  // namespace

std::optional<Tensor> KeptText::become(const std::vector<int32_t>& ids, int64_t room,
                                       const std::atomic<int>& stop) {
  const int64_t count = std::ssize(ids), longest = longest_sequence(config_);
  const auto same = std::ranges::mismatch(ids, ids_).in1 - ids.begin();
  num_reused_ = std::min<int64_t>(same, count - 1);  // logits follow from a token that is computed
  if (decoder_ == nullptr || decoder_->num_positions() < count + room) {
    const auto positions = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count + room)));
    decoder_.reset();  // two at a time would take the memory of two
    decoder_ = std::make_unique<Decoder>(config_.model, units_, 1,
                                         std::min(std::max(positions, kFirstPositions), longest),
                                         compute_dtype(config_.precision), device_);
    num_reused_ = 0;
  }
  decoder_->keep_first(0, num_reused_);
  ids_.assign(ids.begin(), ids.begin() + num_reused_);
  Tensor logits_1V;
  while (std::ssize(ids_) < count) {
    if (stop != 0) return std::nullopt;
    const auto begin = ids.begin() + std::ssize(ids_);
    const std::vector<int32_t> next(begin, begin + std::min(kTokensAtOnce, count - std::ssize(ids_)));
    logits_1V = decoder_->next_logits(numbers_on(device_, next));
    ids_.insert(ids_.end(), next.begin(), next.end());
  }
  return logits_1V.select(0, 0);
}

Tensor KeptText::add(int32_t id) {
  const Tensor logits_1V = decoder_->next_logits(numbers_on(device_, std::vector<int32_t>{id}));
  ids_.push_back(id);
  return logits_1V.select(0, 0);
}

}  // namespace tycho
