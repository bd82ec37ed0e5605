// Texts of the likeliest tokens, for answers that a model writes.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trainer/eval/scorer.h"

namespace tycho {

/// Returns true when the text so far, one token or more, is a complete answer.
using IsWholeAnswer = std::function<bool(const std::vector<int32_t>& written)>;

/// Continues each prompt with the likeliest token at each step, until `is_whole` or `max_tokens`. Prompts
/// plus `max_tokens` must fit into the model's longest sequence. Ranks divide the prompts and get all texts;
/// each makes the same number of passes. Returns nullopt when `stop` is not 0 on some rank before the end.
/// Collective.
std::optional<std::vector<std::vector<int32_t>>> write_greedily(
    const AskedModel& asked, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens,
    const IsWholeAnswer& is_whole, const std::atomic<int>& stop);

}  // namespace tycho
