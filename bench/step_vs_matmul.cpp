// How much of a training step is its matrix products: times whole steps (forward, backward, clipping, AdamW)
// of a Llama and, alternating with them, its products alone: same shapes, same library, same process.
//   bench_step_vs_matmul [--demo] [--bf16] BATCH SEQ [ROUNDS]
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/timing.h"
#include "trainer/device.h"
#include "trainer/kernels/matmul.h"
#include "trainer/models/model.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/segments.h"
#include "trainer/units/init.h"

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

std::vector<Product> products_of(const LlamaConfig& c, int64_t tokens, int64_t head_chunk,
                                 at::ScalarType dtype) {
  std::vector<Product> products;
  const int64_t q = c.heads * c.head_dim(), kv = c.num_kv_heads() * c.head_dim();
  for (int64_t i = 0; i < c.layers; ++i) {
    products.push_back(make_product(tokens, c.width, q + 2 * kv, dtype));
    products.push_back(make_product(tokens, q, c.width, dtype));
    products.push_back(make_product(tokens, c.width, 2 * c.ffn_width, dtype));
    products.push_back(make_product(tokens, c.ffn_width, c.width, dtype));
  }
  const Product head = make_product(head_chunk, c.width, c.vocab_size, dtype);
  for (int64_t begin = 0; begin < tokens; begin += head_chunk) products.push_back(head);
  return products;
}

void run_products(std::vector<Product>& products) {
  for (Product& p : products) matmul_nt(p.x_NK, p.w_MK, p.y_NM);
  for (auto p = products.rbegin(); p != products.rend(); ++p) {
    matmul_nn(p->y_NM, p->w_MK, p->dx_NK);
    matmul_tn(p->y_NM, p->x_NK, p->dw_MK, false);
  }
}

}  // namespace

int main(int argc, char** argv) {
  LlamaConfig c;
  c.width = 768, c.layers = 12, c.heads = 12, c.ffn_width = 2048, c.vocab_size = 32000;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> numbers;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bf16") == 0)
      dtype = at::kBFloat16;
    else if (std::strcmp(argv[i], "--demo") == 0)
      c.width = 256, c.layers = 4, c.heads = 4, c.kv_heads = 2, c.ffn_width = 768, c.vocab_size = 4096,
      c.tied = true;
    else
      numbers.push_back(std::atoll(argv[i]));
  }
  if (numbers.size() < 2) {
    fmt::print(stderr, "bench_step_vs_matmul [--demo] [--bf16] BATCH SEQ [ROUNDS]\n");
    return 2;
  }
  // As the host does before it opens the engine.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  const c10::InferenceMode no_autograd;
  set_threads(0);
  const BatchShape shape = {numbers[0], numbers[1]};
  const int64_t rounds = numbers.size() > 2 ? numbers[2] : 7;
  ModelConfig config;
  config.value = c;
  LocalUnits units(make_units(model_layout(config).units, dtype, at::kCPU, FlatUnit::Use::kTrain));
  for (FlatUnit& unit : units.owned()) initialise(unit, 1);
  Model model(config, units, shape, dtype, at::kCPU);
  OptimizerConfig adamw;
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(adamw, units.owned());
  const std::vector<Tensor> grads =
      trained_grads(units.owned(), param_rules(adamw, {}, model_layout(config).units));
  const Tensor tokens = at::randint(c.vocab_size, {shape.tokens()}, at::kInt);
  const Tensor weight_1 = at::full({1}, 1.0 / static_cast<double>(shape.tokens()), at::kFloat);
  const int64_t chunk =
      activation_specs(config, shape, static_cast<int64_t>(at::elementSize(dtype))).head_chunk;
  std::vector<Product> products = products_of(c, shape.tokens(), chunk, dtype);

  std::vector<double> steps, bounds;
  for (int64_t round = -2; round < rounds; ++round) {  // two to warm up
    const double step_s = seconds([&] {
      model.forward_backward({tokens, tokens, true, true}, weight_1);
      const GradNorm norm = clip_gradients({1.0}, grads);
      optimizer->step(1e-4, round + 3, norm.scale_1);
    });
    const double bound_s = seconds([&] { run_products(products); });
    if (round >= 0) steps.push_back(step_s), bounds.push_back(bound_s);
  }
  const double flops = 6.0 * static_cast<double>(model.layout().num_matmul_params * shape.tokens());
  fmt::print(
      "{} B={} T={} {}: step {:.4f} s, products alone {:.4f} s ({:.0f} GFLOP/s), ratio {:.3f}; {} rounds, "
      "{}\n",
      c.width == 256 ? "demo" : "125M", shape.batch, shape.seq, dtype == at::kFloat ? "fp32" : "bf16",
      median(steps), median(bounds), flops / median(bounds) / 1e9, median(steps) / median(bounds), rounds,
      device_name(at::kCPU));
}
