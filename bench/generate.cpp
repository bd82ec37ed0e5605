// Greedy texts from a model folder of Hugging Face, one token after the other through the cache; prints one
// JSON line for bench/generate.py.
//   bench_generate FOLDER PROMPT_TOKENS NEW_TOKENS fp32|bf16 THREADS [TEXTS]
// With TEXTS, that many of them, one by one and together, alternating.
#include <ATen/ops/arange.h>
#include <c10/core/InferenceMode.h>

#include <chrono>
#include <cstring>

#include "bench/peak_flops.h"
#include "trainer/base/json.h"
#include "trainer/device/device.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/models/decode_batch.h"
#include "trainer/saving/initial_weights.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Loaded {
  ModelConfig config;
  at::ScalarType dtype;
  LocalUnits& units;
};

/// Bytes of all weights: what a token of a model with tied embeddings reads at least.
double weight_bytes(const ModelConfig& config, at::ScalarType dtype) {
  int64_t elements = 0;
  for (const UnitSpec& unit : model_layout(config).units) elements += unit.numel();
  return static_cast<double>(elements) * static_cast<double>(c10::elementSize(dtype));
}

/// The likeliest tokens after each prompt.
std::vector<std::vector<int32_t>> write(const Loaded& model, const std::vector<TextToGrow>& texts) {
  std::vector<std::vector<int32_t>> written(texts.size());
  const auto make = [&](int64_t batch, int64_t positions) {
    return std::make_unique<Decoder>(model.config, model.units, batch, positions, model.dtype, at::kCPU);
  };
  const auto next = [&](size_t i, const Tensor& logits_V) -> std::optional<int32_t> {
    written[i].push_back(logits_V.argmax().to(at::kInt).item<int32_t>());
    if (std::ssize(written[i]) == texts[i].max_tokens) return std::nullopt;
    return written[i].back();
  };
  DecodeBatch growing(model.config, make, texts, next);
  while (!growing.done()) growing.pass();
  return written;
}

/// Alternates between texts one by one and together; the times of each.
Json compare_ways(const Loaded& model, int64_t num_texts, int64_t prompt_tokens, int64_t new_tokens) {
  std::vector<TextToGrow> texts;
  for (int64_t i = 0; i < num_texts; ++i) {
    const Tensor prompt = at::arange(1 + 100 * i, 1 + 100 * i + prompt_tokens, at::kInt);
    texts.push_back({{prompt.data_ptr<int32_t>(), prompt.data_ptr<int32_t>() + prompt_tokens}, new_tokens});
  }
  Json one_by_one = Json::array(), together = Json::array();
  bool same = true;
  std::vector<std::vector<int32_t>> all;
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto start = Clock::now();
    std::vector<std::vector<int32_t>> alone;
    for (const TextToGrow& text : texts) alone.push_back(write(model, {text})[0]);
    one_by_one.push_back(seconds_since(start));
    start = Clock::now();
    all = write(model, texts);
    same = all == alone && same;
    together.push_back(seconds_since(start));
  }
  return {{"one_by_one_s", one_by_one}, {"together_s", together}, {"same_texts", same}, {"texts", all}};
}

}  // namespace
}  // namespace tycho

int main(int argc, char** argv) {
  using namespace tycho;
  if (argc != 6 && argc != 7) {
    fmt::print(stderr, "bench_generate FOLDER PROMPT_TOKENS NEW_TOKENS fp32|bf16 THREADS [TEXTS]\n");
    return 2;
  }
  const c10::InferenceMode no_autograd;
  const int64_t prompt_tokens = std::atoll(argv[2]), new_tokens = std::atoll(argv[3]);
  const at::ScalarType dtype = std::strcmp(argv[4], "bf16") == 0 ? at::kBFloat16 : at::kFloat;
  set_threads(std::atoll(argv[5]));
  const ModelConfig config = read_hf_config(read_hf_config_file(argv[1]), argv[1]).model;
  LocalUnits units(model_layout(config).units, dtype, at::kCPU, UnitUse::kInfer);
  load_initial_weights(argv[1], config, units.owned());
  if (argc == 7) {
    const Json result = compare_ways({config, dtype, units}, std::atoll(argv[6]), prompt_tokens, new_tokens);
    fmt::print("{}\n", result.dump());
    return 0;
  }
  Decoder decoder(config, units, 1, prompt_tokens + new_tokens, dtype, at::kCPU);

  const Tensor prompt = at::arange(1, prompt_tokens + 1, at::kInt);
  std::vector<int32_t> tokens;
  std::vector<double> token_s;
  decoder.next_logits(prompt);  // memory and threads are made once, as the rival's are
  decoder.keep_first(0, 0);
  auto before = Clock::now();
  Tensor logits_BV = decoder.next_logits(prompt);
  while (static_cast<int64_t>(tokens.size()) < new_tokens) {
    const Tensor next_1 = logits_BV.argmax(1).to(at::kInt);
    tokens.push_back(next_1.item<int32_t>());
    const auto now = Clock::now();
    token_s.push_back(std::chrono::duration<double>(now - before).count());
    before = now;
    if (static_cast<int64_t>(tokens.size()) < new_tokens) logits_BV = decoder.next_logits(next_1);
  }
  // The first token's time is the prompt's.
  double after_first_s = 0;
  for (size_t i = 1; i < token_s.size(); ++i) after_first_s += token_s[i];
  const double tokens_per_s = static_cast<double>(new_tokens - 1) / after_first_s;
  const Json result = {
      {"tokens", tokens},
      {"prompt_s", token_s.front()},
      {"tokens_per_s", tokens_per_s},
      {"memory_share", tokens_per_s * weight_bytes(config, dtype) / reading_rate(std::atoi(argv[5]))}};
  fmt::print("{}\n", result.dump());
}
