// Measures what a loss of a recipe's own costs: whole training steps (forward, backward, clipping, AdamW) of
// a GPT-2 of 124M with the fused cross-entropy, with a smoothed, z-regularised loss, and with one of all
// statistics, alternating in one process.
//   bench_loss_step [--bf16] BATCH SEQ [ROUNDS]
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <c10/core/InferenceMode.h>
#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/timing.h"
#include "trainer/device/device.h"
#include "trainer/models/model.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/segments.h"
#include "trainer/sharding/init.h"

namespace {

using namespace tycho;

/// A term of all inputs of a token.
Json term(const char* nodes) {
  Json inputs = Json::array();
  for (const char* name : kLossInputs) inputs.push_back({{"name", name}});
  Json list = Json::parse(nodes);
  const auto last = static_cast<int64_t>(list.size()) - 1;
  return {{"inputs", inputs},
          {"nodes", std::move(list)},
          {"outputs", Json::array({{{"name", "loss"}, {"node", last}}})}};
}

struct Variant {
  const char* name;
  TokenLoss loss;
  std::vector<double> steps = {};
};

std::vector<Variant> variants() {
  const Json smoothed = term(R"([["input",0],["input",1],["input",2],["number",0.9],["mul",3,1],["sub",0,4],
    ["number",0.1],["mul",6,2],["sub",5,7]])");
  const Json z = term(R"([["input",0],["number",1e-4],["mul",0,0],["mul",1,2]])");
  const Json all = term(R"([["input",0],["input",1],["input",2],["input",3],["input",4],["number",0.1],
    ["mul",5,3],["tanh",6],["sub",4,2],["mul",7,8],["sub",0,1],["sigmoid",1],["mul",10,11],["exp",6],
    ["add",9,12],["mul",5,13],["add",14,15]])");
  return {{"cross-entropy", {}},
          {"smoothed + z", TokenLoss({{"smoothed", smoothed}, {"z", z}})},
          {"all statistics", TokenLoss({{"all", all}})}};
}

}  // namespace

int main(int argc, char** argv) {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> numbers;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bf16") == 0)
      dtype = at::kBFloat16;
    else
      numbers.push_back(std::atoll(argv[i]));
  }
  if (numbers.size() < 2) {
    fmt::print(stderr, "bench_loss_step [--bf16] BATCH SEQ [ROUNDS]\n");
    return 2;
  }
  mallopt(M_MMAP_THRESHOLD, 1 << 30);  // as the host does before it opens the engine
  mallopt(M_TRIM_THRESHOLD, -1);
  const c10::InferenceMode no_autograd;
  set_threads(0);
  const BatchShape shape = {numbers[0], numbers[1]};
  const int64_t rounds = numbers.size() > 2 ? numbers[2] : 9;
  Gpt2Config gpt2;
  gpt2.max_seq_len = shape.seq;
  const ModelConfig config{gpt2};
  LocalUnits units(model_layout(config).units, dtype, at::kCPU, UnitUse::kTrain);
  for (const OwnedRange& range : units.owned()) initialise(range, 1);
  OptimizerConfig adamw;
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(adamw, units.owned());
  const std::vector<Tensor> grads =
      trained_grads(units.owned(), param_rules(adamw, {}, model_layout(config).units));
  const Tensor tokens = at::randint(decoder_spec(config).vocab_size, {shape.tokens()}, at::kInt);
  const Tensor weight_1 = at::full({1}, 1.0 / static_cast<double>(shape.tokens()), at::kFloat);
  std::vector<Variant> all = variants();
  std::vector<std::unique_ptr<Model>> models;
  for (const Variant& variant : all)
    models.push_back(std::make_unique<Model>(config, units, shape, dtype, at::kCPU, RecomputeConfig{},
                                             ParallelRegion{}, PipelineStage{}, variant.loss));
  for (int64_t round = -1; round < rounds; ++round)  // one to warm up
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t at = (i + static_cast<size_t>(round + 1)) % all.size();  // none is always first
      const double step_s = seconds([&] {
        models[at]->forward_backward({tokens, tokens}, weight_1);
        const GradNorm norm = clip_gradients({1.0}, grads, *make_world_of_one());
        optimizer->step(1e-4, round + 2, norm.scale_1);
      });
      if (round >= 0) all[at].steps.push_back(step_s);
    }
  const std::vector<double> plain = all[0].steps;
  for (Variant& variant : all) {
    std::vector<double> ratios;
    for (size_t i = 0; i < plain.size(); ++i) ratios.push_back(variant.steps[i] / plain[i]);
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    const double low = *least, high = *most;
    fmt::print(
        "{:15} {}: step {:.4f} s, of the plain step in the same round {:.3f} (from {:.3f} to {:.3f})\n",
        variant.name, dtype == at::kFloat ? "fp32" : "bf16", median(variant.steps), median(ratios), low,
        high);
  }
  fmt::print("B={} T={}, {} rounds, {}\n", shape.batch, shape.seq, rounds, device_name(at::kCPU));
}
