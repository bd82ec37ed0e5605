// One function says whether so many ranks can share a model; the advice lists those for which it does.
#include "trainer/recipe/tensor_parallel.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

namespace tycho {
namespace {

struct Shared {
  int64_t heads, kv_heads, ffn_width, vocab_size, seq_len;
  bool cuts_tokens;

  /// Returns true when every rank gets the same number of heads; several ranks may hold the same head of keys
  /// and values.
  bool heads_divide(int64_t tp) const {
    return heads % tp == 0 && (kv_heads % tp == 0 || tp % kv_heads == 0);
  }
  bool tokens_divide(int64_t tp) const { return !cuts_tokens || seq_len % tp == 0; }
  bool widths_suffice(int64_t tp) const { return std::min(ffn_width, vocab_size) >= tp; }
  bool can_be(int64_t tp) const { return heads_divide(tp) && tokens_divide(tp) && widths_suffice(tp); }
};

Shared shared_of(const TrainConfig& config) {
  return std::visit(
      [&](const auto& model) -> Shared {
        int64_t ffn_width = 0;
        if constexpr (requires { model.hidden(); })
          ffn_width = model.hidden();
        else
          ffn_width = model.ffn_width;
        return {model.heads,      model.num_kv_heads(), ffn_width,
                model.vocab_size, config.seq_len,       config.parallel.sequence_parallel};
      },
      config.model.value);
}

constexpr size_t kShownMeshes = 3;

/// Lists the sizes of tp that the model and the number of ranks allow, nearest to `wanted` first.
std::string nearest(const Shared& shared, int64_t wanted, int64_t num_ranks) {
  std::vector<int64_t> sizes;
  for (int64_t tp = 1; tp <= shared.heads; ++tp)
    if (shared.can_be(tp) && num_ranks % tp == 0) sizes.push_back(tp);
  const auto distance = [&](int64_t tp) {
    return std::abs(std::log(static_cast<double>(tp) / static_cast<double>(wanted)));
  };
  std::stable_sort(sizes.begin(), sizes.end(),
                   [&](int64_t a, int64_t b) { return distance(a) < distance(b) - 1e-9; });
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(sizes.size(), kShownMeshes); ++i)
    texts.push_back(fmt::format("tp = {} and {} for data", sizes[i], num_ranks / sizes[i]));
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string all_sizes(const Shared& shared) {
  std::vector<int64_t> sizes;
  for (int64_t tp = 1; tp <= shared.heads; ++tp)
    if (shared.can_be(tp)) sizes.push_back(tp);
  return fmt::format("{}", fmt::join(sizes, ", "));
}

void check_shared(const Shared& shared, int64_t tp, int64_t num_ranks, ConfigProblems& problems) {
  if (shared.can_be(tp)) return;
  std::string why;
  if (!shared.heads_divide(tp))
    why = fmt::format(
        "{} ranks cannot evenly share {} heads{}", tp, shared.heads,
        shared.kv_heads == shared.heads ? "" : fmt::format(" with {} for keys and values", shared.kv_heads));
  else if (!shared.widths_suffice(tp))
    why = fmt::format("{} ranks are more than model.ffn_width or model.vocab_size", tp);
  else
    why = fmt::format(
        "seq_len = {} is not a multiple of {}, which sequence parallel needs; set "
        "parallel.sequence_parallel = false",
        shared.seq_len, tp);
  problems.add("parallel.tp", "{}. This model can be shared by {}; with {} rank{}, the nearest meshes: {}",
               why, all_sizes(shared), num_ranks, num_ranks == 1 ? "" : "s", nearest(shared, tp, num_ranks));
}

}  // namespace

void check_tensor_parallel(const TrainConfig& config, int64_t num_ranks, ConfigProblems& problems) {
  if (const int64_t tp = config.parallel.tp; tp > 1) check_shared(shared_of(config), tp, num_ranks, problems);
}

}  // namespace tycho
