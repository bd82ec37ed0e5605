// Twenty steps of finetuning as transformers and torch.optim.AdamW take them, from the same weights and
// batches.
#include "tests/trainer/saving/oracle_model.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/segments.h"

namespace tycho {
namespace {

class FamilySteps : public testing::TestWithParam<const char*> {};

TEST_P(FamilySteps, HaveTransformersLosses) {
  const c10::InferenceMode no_autograd;
  const std::string folder = family_folder(GetParam());
  const OracleModel oracle(folder, folder + "/steps.safetensors");
  const Tensor &tokens_SBT = oracle.wanted("tokens"), &losses_S = oracle.wanted("losses");
  const int64_t batch = tokens_SBT.size(1), seq = tokens_SBT.size(2);
  OptimizerConfig config;
  config.value = AdamWConfig{.lr = 1e-3, .betas = {0.9, 0.95}, .eps = 1e-8, .weight_decay = 0.1};
  const ParamRules rules = param_rules(config, {}, model_layout(oracle.config).units);
  LocalUnits units = oracle.load(UnitUse::kTrain);
  Model model(oracle.config, units, {batch, seq}, at::kFloat, at::kCPU);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(config, units.owned(), rules);
  const std::vector<Tensor> grads = trained_grads(units.owned(), rules);
  ASSERT_EQ(tokens_SBT.size(0), 20);
  for (int64_t s = 0; s < tokens_SBT.size(0); ++s) {
    const Tensor targets_BT = shifted_targets(tokens_SBT[s]);
    const auto count = static_cast<double>(batch * (seq - 1));
    const double loss =
        model
            .forward_backward({tokens_SBT[s].reshape({-1}), targets_BT.reshape({-1}), true, true},
                              at::full({1}, 1 / count, at::kFloat))
            .item<double>() /
        count;
    const double wanted = losses_S[s].item<double>();
    EXPECT_NEAR(loss / wanted, 1, 2e-6) << "step " << s + 1;
    const GradNorm norm = clip_gradients({1.0}, grads, *make_world_of_one());
    const double wanted_norm = oracle.wanted("grad_norms")[s].item<double>();
    EXPECT_NEAR(norm.norm_1.item<double>() / wanted_norm, 1, 1e-4) << "step " << s + 1;
    optimizer->step(1e-3, s + 1, norm.scale_1);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, FamilySteps, testing::Values("qwen3_tied", "gemma3_linear", "phi4_mini"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tycho
