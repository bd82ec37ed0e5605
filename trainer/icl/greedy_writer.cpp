// One text at a time on each rank, with a cache of keys and values.
#include "trainer/icl/greedy_writer.h"

#include <ATen/ops/zeros.h>
#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/models/model.h"
#include "trainer/parallel/gather_texts.h"

namespace tycho {
namespace {

/// Whether no rank has anything to write. Collective.
bool all_done(const AskedModel& asked, bool done) {
  if (asked.data_ranks.size() == 1) return done;
  Tensor writing = at::zeros({1}, at::TensorOptions().dtype(at::kInt).device(asked.device));
  if (!done) writing.fill_(1);
  asked.data_ranks.all_reduce(writing);
  return writing.item<int32_t>() == 0;
}

/// A rank with nothing to write repeats its last token until the others are done: they may wait for its share
/// of the weights.
std::vector<int32_t> write_one(const AskedModel& asked, const std::vector<int32_t>& prompt,
                               int64_t max_tokens, const IsWholeAnswer& is_whole, bool done) {
  Decoder decoder(asked.model, asked.units, 1, std::ssize(prompt) + max_tokens, asked.dtype, asked.device,
                  asked.region, asked.stage);
  std::vector<int32_t> written, next = prompt;
  for (int64_t passes = 0; passes < max_tokens; ++passes) {
    const Tensor logits_1V = decoder.next_logits(numbers_on(asked.device, next));
    if (!done) {
      written.push_back(static_cast<int32_t>(logits_1V.argmax(1).item<int64_t>()));
      done = is_whole(written) || std::ssize(written) == max_tokens;
    }
    if (all_done(asked, done)) break;
    next = {written.empty() ? prompt.back() : written.back()};
  }
  return written;
}

}  // namespace

std::optional<std::vector<std::vector<int32_t>>> write_greedily(
    const AskedModel& asked, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens,
    const IsWholeAnswer& is_whole, const std::atomic<int>& stop) {
  const size_t count = prompts.size(), ranks = static_cast<size_t>(asked.data_ranks.size()),
               rank = static_cast<size_t>(asked.data_ranks.rank());
  // Each row: how many tokens, then the tokens. One rank has them, the others zeros.
  Tensor texts = at::zeros({std::ssize(prompts), 1 + max_tokens}, at::TensorOptions().dtype(at::kInt));
  for (size_t first = 0; first < count; first += ranks) {
    if (first_signal(asked.world, stop) != 0) return std::nullopt;
    const bool has_one = first + rank < count;
    const size_t own = has_one ? first + rank : count - 1;
    const std::vector<int32_t> written = write_one(asked, prompts[own], max_tokens, is_whole, !has_one);
    if (!has_one) continue;
    int32_t* const row = texts.data_ptr<int32_t>() + static_cast<int64_t>(own) * (1 + max_tokens);
    row[0] = static_cast<int32_t>(written.size());
    std::copy(written.begin(), written.end(), row + 1);
  }
  Tensor all_texts = texts.to(asked.device);
  asked.data_ranks.all_reduce(all_texts);
  texts = all_texts.cpu();
  asked.world.check();
  std::vector<std::vector<int32_t>> result;
  const int32_t* row = texts.data_ptr<int32_t>();
  for (size_t i = 0; i < count; ++i, row += 1 + max_tokens) result.emplace_back(row + 1, row + 1 + row[0]);
  return result;
}

}  // namespace tycho
