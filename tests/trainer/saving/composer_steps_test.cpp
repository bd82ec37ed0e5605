// Steps that Composer's Trainer took with LLM Foundry's MPT, taken here: micro-batches weighted by their
// tokens, groups, freezing, clipping and decay must lead to the same losses and weights.
#include "tests/trainer/saving/oracle_model.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/segments.h"

namespace tycho {
namespace {

OptimizerConfig optimizer_config() {
  DecoupledAdamWConfig adamw;
  adamw.lr = 0.02, adamw.betas = {0.8, 0.9}, adamw.eps = 1e-2, adamw.weight_decay = 0.05;
  adamw.decay_mask = DecayMask::kAll;
  OptimizerConfig config;
  config.value = adamw;
  return config;
}

std::vector<ParamGroupConfig> groups() {
  return {{.match = "wpe", .freeze = true},
          {.match = "norm|bias", .lr = 0.005, .weight_decay = 0.0},
          {.match = "blocks\\.1\\.", .betas = std::array<double, 2>{0.5, 0.6}}};
}

TEST(ComposerSteps, AreTakenTheSameWay) {
  const c10::InferenceMode no_autograd;
  const std::string folder = TYCHO_GOLDEN_DIR "/composer_steps";
  const OracleModel oracle(folder, TYCHO_GOLDEN_DIR "/composer_steps/steps.safetensors");
  const Tensor &ids_SBT = oracle.wanted("ids"), &labels_SBT = oracle.wanted("labels");
  const int64_t batch = ids_SBT.size(1), seq = ids_SBT.size(2), micro = 2;
  const ParamRules rules = param_rules(optimizer_config(), groups(), model_layout(oracle.config).units);
  LocalUnits units(with_frozen(model_layout(oracle.config).units, rules), at::kFloat, at::kCPU,
                   UnitUse::kTrain);
  load_initial_weights(folder, oracle.config, units.owned());
  Model model(oracle.config, units, {micro, seq}, at::kFloat, at::kCPU);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(optimizer_config(), units.owned(), rules);
  const std::vector<Tensor> grads = trained_grads(units.owned(), rules);
  for (int64_t s = 0; s < ids_SBT.size(0); ++s) {
    const Tensor targets_BT = shifted_targets(labels_SBT[s]);
    const auto tokens = static_cast<double>(targets_BT.ne(-100).sum().item<int64_t>());
    double loss = 0;
    for (int64_t row = 0; row < batch; row += micro)
      loss += model
                  .forward_backward(
                      {ids_SBT[s].narrow(0, row, micro).reshape({-1}),
                       targets_BT.narrow(0, row, micro).reshape({-1}), row == 0, row + micro == batch},
                      at::full({1}, 1 / tokens, at::kFloat))
                  .item<double>();
    const double wanted = oracle.wanted("losses")[s].item<double>();
    EXPECT_NEAR(loss / tokens, wanted, 1e-5 * wanted) << "step " << s + 1;
    const GradNorm norm = clip_gradients({0.5}, grads, *make_world_of_one());
    EXPECT_LT(norm.scale_1.item<float>(), 1.0f);  // it clips
    optimizer->step(0.02 * oracle.wanted("factors")[s].item<double>(), s + 1, norm.scale_1);
  }
  for (GatheredUnit& unit : units.gathered())
    for (size_t i = 0; i < unit.spec().params.size(); ++i) {
      const std::string& name = unit.spec().params[i].name;
      const Tensor& after = oracle.wanted("after." + name);
      EXPECT_LE((unit.params()[i] - after).abs().max().item<double>(),
                1e-5 * after.abs().max().item<double>())
          << name;
    }
}

}  // namespace
}  // namespace tycho
