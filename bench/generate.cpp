// Greedy text from a model folder of Hugging Face, one token after the other through the cache; prints one
// JSON line for bench/generate.py.
//   bench_generate FOLDER PROMPT_TOKENS NEW_TOKENS fp32|bf16 THREADS
#include <ATen/ops/arange.h>
#include <c10/core/InferenceMode.h>

#include <chrono>
#include <cstring>

#include "trainer/base/json.h"
#include "trainer/convert/hf_config.h"
#include "trainer/convert/hf_folder.h"
#include "trainer/device/device.h"
#include "trainer/models/model.h"
#include "trainer/restore/initial_weights.h"

int main(int argc, char** argv) {
  using namespace tycho;
  if (argc != 6) {
    fmt::print(stderr, "bench_generate FOLDER PROMPT_TOKENS NEW_TOKENS fp32|bf16 THREADS\n");
    return 2;
  }
  const c10::InferenceMode no_autograd;
  const int64_t prompt_tokens = std::atoll(argv[2]), new_tokens = std::atoll(argv[3]);
  const at::ScalarType dtype = std::strcmp(argv[4], "bf16") == 0 ? at::kBFloat16 : at::kFloat;
  set_threads(std::atoll(argv[5]));
  const ModelConfig config = read_hf_config(read_hf_config_file(argv[1]), argv[1]).model;
  LocalUnits units(model_layout(config).units, dtype, at::kCPU, UnitUse::kInfer);
  load_initial_weights(argv[1], config, units.owned());
  Decoder decoder(config, units, 1, prompt_tokens + new_tokens, dtype, at::kCPU);

  using Clock = std::chrono::steady_clock;
  const Tensor prompt = at::arange(1, prompt_tokens + 1, at::kInt);
  std::vector<int32_t> tokens;
  std::vector<double> token_s;
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
  const Json result = {{"tokens", tokens},
                       {"prompt_s", token_s.front()},
                       {"tokens_per_s", static_cast<double>(new_tokens - 1) / after_first_s}};
  fmt::print("{}\n", result.dump());
}
