// Each rank lets its share of the texts grow side by side.
#include "trainer/eval/greedy_writer.h"

#include <ATen/ops/zeros.h>
#include <algorithm>

#include "trainer/comm/collective_strings.h"
#include "trainer/models/decode_batch.h"

namespace tycho {
namespace {

constexpr int64_t kPassesBetweenSignals = 16;

/// Returns true when no rank has anything left to write. Collective.
bool all_done(const AskedModel& asked, bool done) {
  if (asked.data_ranks.size() == 1) return done;
  Tensor writing = at::zeros({1}, at::TensorOptions().dtype(at::kInt).device(asked.device));
  if (!done) writing.fill_(1);
  asked.data_ranks.all_reduce(writing);
  return writing.item<int32_t>() == 0;
}

/// Returns this rank's texts after its prompts; nullopt after a signal. Collective.
std::optional<std::vector<std::vector<int32_t>>> write_own(const AskedModel& asked,
                                                           const std::vector<TextToGrow>& texts,
                                                           const IsWholeAnswer& is_whole,
                                                           const std::atomic<int>& stop) {
  std::vector<std::vector<int32_t>> written(texts.size());
  const auto make_decoder = [&](int64_t batch, int64_t num_positions) {
    return std::make_unique<Decoder>(asked.model, asked.units, batch, num_positions, asked.dtype,
                                     asked.device, asked.region, asked.stage);
  };
  const auto next = [&](size_t i, const Tensor& logits_V) -> std::optional<int32_t> {
    written[i].push_back(static_cast<int32_t>(logits_V.argmax().item<int64_t>()));
    if (is_whole(written[i]) || std::ssize(written[i]) == texts[i].max_tokens) return std::nullopt;
    return written[i].back();
  };
  DecodeBatch growing(asked.model, make_decoder, texts, next, asked.batch_tokens);
  for (int64_t passes = 0; !all_done(asked, growing.done()); ++passes) {
    if (passes % kPassesBetweenSignals == 0 && first_signal(asked.world, stop) != 0) return std::nullopt;
    growing.pass();
  }
  return written;
}

}  // namespace

std::optional<std::vector<std::vector<int32_t>>> write_greedily(
    const AskedModel& asked, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens,
    const IsWholeAnswer& is_whole, const std::atomic<int>& stop) {
  const auto ranks = static_cast<size_t>(asked.data_ranks.size()),
             rank = static_cast<size_t>(asked.data_ranks.rank());
  std::vector<TextToGrow> own;
  for (size_t i = rank; i < prompts.size(); i += ranks) own.push_back({prompts[i], max_tokens});
  const auto written = write_own(asked, own, is_whole, stop);
  if (!written) return std::nullopt;
  // Each row: how many tokens, then the tokens. One rank has them, the others zeros.
  Tensor texts = at::zeros({std::ssize(prompts), 1 + max_tokens}, at::TensorOptions().dtype(at::kInt));
  for (size_t i = 0; i < written->size(); ++i) {
    const std::vector<int32_t>& text = (*written)[i];
    int32_t* const row =
        texts.data_ptr<int32_t>() + static_cast<int64_t>(rank + i * ranks) * (1 + max_tokens);
    row[0] = static_cast<int32_t>(text.size());
    std::copy(text.begin(), text.end(), row + 1);
  }
  Tensor all_texts = texts.to(asked.device);
  asked.data_ranks.all_reduce(all_texts);
  texts = all_texts.cpu();
  asked.world.check();
  std::vector<std::vector<int32_t>> result;
  const int32_t* row = texts.data_ptr<int32_t>();
  for (size_t i = 0; i < prompts.size(); ++i, row += 1 + max_tokens)
    result.emplace_back(row + 1, row + 1 + row[0]);
  return result;
}

}  // namespace tycho
