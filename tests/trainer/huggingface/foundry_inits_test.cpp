// First values of an MPT against what LLM Foundry's own functions drew: tests/golden/foundry_inits.py.
#include <cmath>

#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/layout/model_layout.h"

namespace tycho {
namespace {

double deviation(const Init& init) {
  switch (init.kind) {
    case Init::Kind::kNormal: return init.scale;
    case Init::Kind::kUniform: return init.scale / std::sqrt(3.0);
    default: return 0;
  }
}

void expect_like(const ParamSpec& spec, const Json& drawn) {
  const double std = drawn[0], min = drawn[1], max = drawn[2];
  const double wanted = deviation(spec.init), n = static_cast<double>(numel(spec.shape));
  EXPECT_NEAR(std, wanted, 4 * wanted / std::sqrt(2 * n)) << spec.name;
  if (spec.init.kind != Init::Kind::kUniform) return;
  // The ends of n uniform numbers are a few parts in n away from the limits.
  const double low = spec.init.middle - spec.init.scale, high = spec.init.middle + spec.init.scale;
  EXPECT_GE(min, low) << spec.name;
  EXPECT_LE(max, high) << spec.name;
  EXPECT_NEAR(min, low, 20 * spec.init.scale / n) << spec.name;
  EXPECT_NEAR(max, high, 20 * spec.init.scale / n) << spec.name;
}

TEST(FoundryInits, HaveTheSameDistributions) {
  for (const Json& one : read_json_file(std::string(TYCHO_GOLDEN_DIR) + "/foundry_inits.json")) {
    SCOPED_TRACE(one["init_config"].dump());
    const Json config = {{"model_type", "mpt"},
                         {"d_model", 64},
                         {"n_heads", 4},
                         {"n_layers", 3},
                         {"vocab_size", 500},
                         {"max_seq_len", 100},
                         {"init_config", one["init_config"]}};
    const ModelLayout layout = model_layout(read_hf_config(config, "config.json").model);
    for (const UnitSpec& unit : layout.units)
      for (const ParamSpec& spec : unit.params) expect_like(spec, one["params"][spec.name]);
  }
}

}  // namespace
}  // namespace tycho
