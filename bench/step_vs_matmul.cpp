// How much of a training step is its matrix products: times whole steps (forward, backward, clipping, AdamW)
// of a model and, alternating with them, its products alone: same shapes, same library, same process. Prints
// where the rest of a step goes, and the step over its floor: its FLOPs at 0.9 of the rate of a loop of
// multiply-add instructions, plus what AdamW reads and writes at the rate of a copy. Data costs nothing here;
// `data_wait_s` of a run's metrics says what it costs there.
//   bench_step_vs_matmul [--model 125m|demo|gpt2|mpt] [--bf16] BATCH SEQ [ROUNDS]
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>

#include "bench/peak_flops.h"
#include "bench/step_parts.h"
#include "bench/timing.h"
#include "trainer/device/device.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/matmul.h"
#include "trainer/models/model.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/segments.h"
#include "trainer/sharding/init.h"

namespace {

using namespace tycho;

struct Product {
  Tensor x_NK, w_MK, y_NM, dx_NK, dw_MK;
};

// One product of the model with memory of its own, so that weights come from as far away as in a step.
Product make_product(int64_t n, int64_t k, int64_t m, at::ScalarType dtype) {
  const auto options = at::TensorOptions().dtype(dtype);
  return {at::randn({n, k}, options), at::randn({m, k}, options), at::empty({n, m}, options),
          at::empty({n, k}, options), at::empty({m, k}, options.dtype(at::kFloat))};
}

std::vector<Product> products_of(const DecoderSpec& s, int64_t tokens, int64_t head_chunk,
                                 at::ScalarType dtype) {
  std::vector<Product> products;
  for (int64_t i = 0; i < s.layers; ++i) {
    products.push_back(make_product(tokens, s.width, s.attention.qkv_width(), dtype));
    products.push_back(make_product(tokens, s.attention.width(), s.width, dtype));
    products.push_back(make_product(tokens, s.width, (s.ffn.gated ? 2 : 1) * s.ffn.width, dtype));
    products.push_back(make_product(tokens, s.ffn.width, s.width, dtype));
  }
  const Product head = make_product(head_chunk, s.width, s.vocab_size, dtype);
  for (int64_t begin = 0; begin < tokens; begin += head_chunk) products.push_back(head);
  return products;
}

/// The model of that name; nothing for another.
std::optional<ModelConfig> model_named(const std::string& name, int64_t seq) {
  LlamaConfig llama;
  Gpt2Config gpt2;
  MptConfig mpt;
  llama.width = 768, llama.layers = 12, llama.heads = 12, llama.ffn_width = 2048, llama.vocab_size = 32000;
  mpt.width = 768, mpt.layers = 12, mpt.heads = 12, mpt.max_seq_len = gpt2.max_seq_len = seq;
  mpt.positions = PositionKind::kAlibi, mpt.no_bias = true;
  if (name == "125m") return ModelConfig{llama};
  if (name == "gpt2") return ModelConfig{gpt2};
  if (name == "mpt") return ModelConfig{mpt};
  if (name != "demo") return std::nullopt;
  llama.width = 256, llama.layers = 4, llama.heads = 4, llama.kv_heads = 2, llama.ffn_width = 768;
  llama.vocab_size = 4096, llama.tied = true;
  return ModelConfig{llama};
}

/// Of one round of all products.
struct ProductSeconds {
  double forward = 0, dx = 0, dw = 0;
  double all() const { return forward + dx + dw; }
};

ProductSeconds run_products(std::vector<Product>& products) {
  ProductSeconds s;
  for (Product& p : products) s.forward += seconds([&] { matmul_nt(p.x_NK, p.w_MK, p.y_NM); });
  for (auto p = products.rbegin(); p != products.rend(); ++p) {
    s.dx += seconds([&] { matmul_nn(p->y_NM, p->w_MK, p->dx_NK); });
    s.dw += seconds([&] { matmul_tn(p->y_NM, p->x_NK, p->dw_MK, false); });
  }
  return s;
}

/// The least time that a step takes, in seconds: `flops` and AdamW's bytes at the rates of this machine.
double floor_of_step(double flops, double num_params, bool bf16) {
  const PeakFlops loop = peak_flops(cpu_kernels().name, bf16, at::get_num_threads());
  if (loop.per_second == 0) return 0;
  const double copied = streaming_rate(), adamw_bytes = num_params * (bf16 ? 30 : 28);
  fmt::print("a loop of {}: {:.1f} GFLOP/s; a copy: {:.1f} GB/s\n", loop.instruction, loop.per_second / 1e9,
             copied / 1e9);
  return flops / (0.9 * loop.per_second) + adamw_bytes / copied;
}

/// Prints the share of each part in all steps.
void print_parts(const std::map<std::string, double>& parts, double steps_s) {
  double rest = steps_s;
  for (const auto& [part, part_s] : parts) {
    fmt::print("  {:<12} {:5.1f} %\n", part, 100 * part_s / steps_s);
    rest -= part_s;
  }
  fmt::print("  {:<12} {:5.1f} %\n", "rest", 100 * rest / steps_s);
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "125m";
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> numbers;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bf16") == 0)
      dtype = at::kBFloat16;
    else if (std::strcmp(argv[i], "--model") == 0 && i + 1 < argc)
      name = argv[++i];
    else
      numbers.push_back(std::atoll(argv[i]));
  }
  const auto model_config = numbers.size() < 2 ? std::nullopt : model_named(name, numbers[1]);
  if (!model_config) {
    fmt::print(stderr, "bench_step_vs_matmul [--model 125m|demo|gpt2|mpt] [--bf16] BATCH SEQ [ROUNDS]\n");
    return 2;
  }
  // As the host does before it opens the engine.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  const c10::InferenceMode no_autograd;
  set_threads(0);
  const BatchShape shape = {numbers[0], numbers[1]};
  const int64_t rounds = numbers.size() > 2 ? numbers[2] : 7;
  const ModelConfig& config = *model_config;
  const DecoderSpec spec = decoder_spec(config);
  LocalUnits units(model_layout(config).units, dtype, at::kCPU, UnitUse::kTrain);
  for (const OwnedRange& range : units.owned()) initialise(range, 1);
  Model model(config, units, shape, dtype, at::kCPU);
  OptimizerConfig adamw;
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(adamw, units.owned());
  const std::vector<Tensor> grads =
      trained_grads(units.owned(), param_rules(adamw, {}, model_layout(config).units));
  const Tensor tokens = at::randint(spec.vocab_size, {shape.tokens()}, at::kInt);
  const Tensor weight_1 = at::full({1}, 1.0 / static_cast<double>(shape.tokens()), at::kFloat);
  const int64_t chunk =
      activation_specs(config, shape, static_cast<int64_t>(at::elementSize(dtype))).head_chunk;
  std::vector<Product> products = products_of(spec, shape.tokens(), chunk, dtype);

  std::vector<double> steps, bounds, forwards, dxs, dws;
  std::map<std::string, double> parts;
  for (int64_t round = -2; round < rounds; ++round) {  // two to warm up
    std::optional<StepParts> listener(std::in_place);
    const double step_s = seconds([&] {
      model.forward_backward({tokens, tokens, true, true}, weight_1);
      const GradNorm norm = clip_gradients({1.0}, grads, *make_world_of_one());
      optimizer->step(1e-4, round + 3, norm.scale_1);
    });
    const std::map<std::string, double> heard = listener->seconds();
    listener.reset();
    const ProductSeconds bound = run_products(products);
    if (round < 0) continue;
    for (const auto& [part, part_s] : heard) parts[part] += part_s;
    steps.push_back(step_s), bounds.push_back(bound.all());
    forwards.push_back(bound.forward), dxs.push_back(bound.dx), dws.push_back(bound.dw);
  }
  const double flops = 6.0 * static_cast<double>(model.layout().num_matmul_params * shape.tokens());
  const auto rate = [&](double share, std::vector<double>& of) { return share * flops / median(of) / 1e9; };
  fmt::print(
      "{} B={} T={} {}: step {:.4f} s, products alone {:.4f} s "
      "({:.0f} GFLOP/s; forward {:.0f}, dx {:.0f}, dw {:.0f}), ratio {:.3f}; {} rounds, {}\n",
      name, shape.batch, shape.seq, dtype == at::kFloat ? "fp32" : "bf16", median(steps), median(bounds),
      rate(1, bounds), rate(1.0 / 3, forwards), rate(1.0 / 3, dxs), rate(1.0 / 3, dws),
      median(steps) / median(bounds), rounds, device_name(at::kCPU));
  double steps_s = 0;
  for (const double step_s : steps) steps_s += step_s;
  print_parts(parts, steps_s);
  const bool bf16 = dtype == at::kBFloat16;
  if (const double floor_s = floor_of_step(flops, static_cast<double>(model.layout().num_params()), bf16);
      floor_s > 0)
    fmt::print("floor of a step {:.4f} s: the step takes {:.2f} times that\n", floor_s,
               median(steps) / floor_s);
}
