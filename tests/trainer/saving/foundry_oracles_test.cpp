// MPTs of LLM Foundry, computed here: losses, logits and every gradient must be those of LLM Foundry itself.
#include <set>

#include "tests/trainer/saving/oracle_model.h"

namespace tycho {
namespace {

std::string folder_of(const std::string& name) {
  return std::string(TYCHO_GOLDEN_DIR) + "/foundry_oracles/" + name;
}

std::vector<std::string> all_cases() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of("")))
    names.insert(entry.path().filename().string());
  return {names.begin(), names.end()};
}

class FoundryOracles : public testing::TestWithParam<std::string> {
 protected:
  OracleModel model_{folder_of(GetParam()), folder_of(GetParam()) + "/oracle.safetensors"};
  const c10::InferenceMode no_autograd_;
};

TEST_P(FoundryOracles, ABatchHasFoundrysLossesAndGradients) { model_.expect_losses_and_gradients(); }

TEST_P(FoundryOracles, DecodingTokenByTokenGivesFoundrysLogits) {
  // Generation does not tell documents apart.
  if (model_.has("sequence_id")) GTEST_SKIP() << "packed rows are not decoded";
  LocalUnits units = model_.load(UnitUse::kInfer);
  const Tensor &ids_T = model_.wanted("ids")[0], &logits_TV = model_.wanted("logits");
  Decoder decoder(model_.config, units, 1, ids_T.size(0), at::kFloat, at::kCPU);
  const double limit = 1e-5 * logits_TV.abs().max().item<double>();
  for (int64_t t = 0; t < ids_T.size(0); ++t)
    EXPECT_LE((decoder.next_logits(ids_T.narrow(0, t, 1).contiguous())[0] - logits_TV[t])
                  .abs()
                  .max()
                  .item<double>(),
              limit)
        << "position " << t;
}

TEST(FoundryOraclesFolder, IsComplete) { EXPECT_EQ(all_cases().size(), 48); }

INSTANTIATE_TEST_SUITE_P(Golden, FoundryOracles, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tycho
