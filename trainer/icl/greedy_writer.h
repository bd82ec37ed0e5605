// Texts of the likeliest tokens, for answers that a model writes.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trainer/icl/scorer.h"

namespace tycho {

/// Whether what was written so far, one token or more, is a whole answer.
using IsWholeAnswer = std::function<bool(const std::vector<int32_t>& written)>;

/// What the model writes after each prompt: the likeliest token, and so on until `is_whole` or `max_tokens`.
/// Prompts with `max_tokens` more are no longer than the model's longest sequence. Ranks share the prompts
/// out and get all texts; each makes as many passes as the others. Nothing when `stop` is not 0 on some rank
/// before the end. Collective.
std::optional<std::vector<std::vector<int32_t>>> write_greedily(
    const AskedModel& asked, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens,
    const IsWholeAnswer& is_whole, const std::atomic<int>& stop);

}  // namespace tycho
