// Initial values of recipes: the bits of the families' own formulas, of direct computations, and on parts of
// matrices; what is refused.
#include "trainer/sharding/defined_init.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/trainer/aten.h"
#include "trainer/base/error.h"
#include "trainer/base/random/normal_numbers.h"
#include "trainer/base/random/philox.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

/// Returns the expression of drawn numbers 0 normal, 1 uniform and 2 cut_normal, and of further nodes, the
/// last of which is the value. JSON has ' for ".
Json drawn(std::string nodes) {
  for (char& letter : nodes) letter = letter == '\'' ? '"' : letter;
  Json all = parse_json(R"([["input",0],["input",1],["input",2],)" + nodes + "]", "test");
  const auto last = static_cast<int64_t>(all.size()) - 1;
  return {{"inputs", Json::array({{{"name", "normal"}}, {{"name", "uniform"}}, {{"name", "cut_normal"}}})},
          {"nodes", std::move(all)},
          {"outputs", Json::array({{{"name", "value"}, {"node", last}}})}};
}

Json times(int input, double factor) {
  return drawn(fmt::format("['number',{}],['mul',{},3]", factor, input));
}

std::vector<InitRange> all_layers(const std::vector<const char*>& roles) {
  std::vector<InitRange> ranges;
  for (const char* role : roles) ranges.push_back({role, 0, 1000});
  return ranges;
}

const std::vector<const char*> kInto = {"embedding", "positions", "head", "q",  "k",
                                        "v",         "qkv",       "gate", "up", "gate_up"};

/// Values of all families whose matrices are normal with deviation std, smaller by `divisor` where they lead
/// back.
DefinedInitConfig normal_of(double std, double divisor) {
  DefinedInitConfig init;
  init.formulas = {{all_layers(kInto), times(0, std)},
                   {all_layers({"out", "down"}), times(0, std / divisor)}};
  return init;
}

DefinedInitConfig everywhere(Json expression) {
  DefinedInitConfig init;
  std::vector<InitRange> all = all_layers(kInto);
  all.push_back({"out", 0, 1000}), all.push_back({"down", 0, 1000});
  init.formulas = {{std::move(all), std::move(expression)}};
  return init;
}

ModelConfig small_llama() {
  LlamaConfig c;
  c.width = 24, c.layers = 2, c.heads = 4, c.kv_heads = 2, c.ffn_width = 40, c.vocab_size = 83;
  c.attention_bias = true;
  return {c};
}

TEST(DefinedInit, OfAFamilysFormulaHasItsBits) {
  constexpr double kStd = 1.0 / 64;  // products with a power of two are exact
  LlamaConfig llama = std::get<LlamaConfig>(small_llama().value);
  Gpt2Config gpt2;
  gpt2.width = 24, gpt2.layers = 8, gpt2.heads = 2, gpt2.vocab_size = 61, gpt2.max_seq_len = 19;
  Gemma3Config gemma;
  gemma.width = 24, gemma.layers = 2, gemma.heads = 2, gemma.head_width = 8, gemma.ffn_width = 40;
  Phi3Config phi;
  phi.width = 32, phi.layers = 2, phi.heads = 2, phi.ffn_width = 24, phi.vocab_size = 64;
  llama.init_std = gpt2.init_std = gemma.init_std = phi.init_std = kStd;
  for (const ModelConfig& model :
       {ModelConfig{llama}, ModelConfig{gpt2}, ModelConfig{gemma}, ModelConfig{phi}}) {
    const DefinedInit own(normal_of(kStd, model.is<Gpt2Config>() ? 4 : 2), model);
    for (const UnitSpec& unit : model_layout(model).units)
      for (const ParamSpec& param : unit.params) {
        std::vector<float> family(static_cast<size_t>(numel(param.shape))), mine(family.size());
        draw_init(param, 5, 0, std::ssize(family), family.data());
        ASSERT_EQ(own.draw(param, 5, 0, std::ssize(mine), mine.data()), param.shape.size() == 2)
            << param.name;
        if (param.shape.size() == 2) {
          EXPECT_EQ(mine, family) << param.name;
        }
      }
  }
}

TEST(DefinedInit, ComputesWhatItsFormulaSays) {
  const Json expression = drawn("['number',0.25],['lt',1,3],['number',0.02],['mul',0,5],['where',4,6,2]");
  const DefinedInit own(everywhere(expression), small_llama());
  const ParamSpec param = {.name = "model.layers.1.mlp.up_proj.weight", .shape = {40, 24}};
  std::vector<float> values(960);
  ASSERT_TRUE(own.draw(param, 7, 0, 960, values.data()));
  const uint64_t key = stream_key(7, param.name), uniform_key = stream_key(7, param.name + " uniform");
  int num_normal = 0;
  for (uint64_t i = 0; i < 960; ++i) {
    float normal[4];
    four_normals(key, i / 4, 1, normal);
    const float uniform = uniform_float(philox(uniform_key, i / 4)[i % 4]);
    if (uniform < 0.25f) ++num_normal;
    if (uniform < 0.25f)
      EXPECT_EQ(values[i], normal[i % 4] * 0.02f) << i;
    else if (std::abs(normal[i % 4]) <= 3)
      EXPECT_EQ(values[i], normal[i % 4]) << i;
    else
      EXPECT_LE(std::abs(values[i]), 3) << i;
  }
  EXPECT_NEAR(num_normal, 240, 60);  // four deviations
}

TEST(DefinedInit, IsTheSameNumberEverywhere) {
  const DefinedInit own(everywhere(drawn("['number',0.1]")), small_llama());
  std::vector<float> values(5);
  ASSERT_TRUE(own.draw({.name = "lm_head.weight", .shape = {83, 24}}, 1, 11, 5, values.data()));
  EXPECT_EQ(values, std::vector<float>(5, 0.1f));
}

TEST(DefinedInit, PiecesAreThoseOfTheWhole) {
  const DefinedInit own(everywhere(drawn("['add',0,1],['mul',3,2]")), small_llama());
  const ParamSpec param = {.name = "model.embed_tokens.weight", .shape = {83, 24}};
  std::vector<float> whole(1992), pieces(1992);
  own.draw(param, 3, 0, 1992, whole.data());
  const std::vector<int64_t> cuts = {0, 1, 2, 7, 100, 1025, 1030, 1992};
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    own.draw(param, 3, cuts[i], cuts[i + 1] - cuts[i], pieces.data() + cuts[i]);
  EXPECT_EQ(pieces, whole);
}

/// The units of a rank along tp with their first weights, drawn in two ranges as two ranks would.
std::vector<Tensor> begun(const ModelConfig& model, const DefinedInit& own, const TpShape& tp) {
  std::vector<Tensor> all;
  for (const UnitSpec& unit : tp_units(model_layout(model).units, tp)) {
    const GatheredUnit gathered(UnitLayout(unit), at::kFloat, at::kCPU, UnitUse::kTrain);
    const int64_t end = gathered.layout().numel(), middle = end / 3;
    initialise(own_range(gathered, 0, middle, UnitUse::kTrain), 9, &own);
    initialise(own_range(gathered, middle, end, UnitUse::kTrain), 9, &own);
    all.push_back(gathered.flat_params());
  }
  return all;
}

TEST(DefinedInit, IsTheSameOnRanksThatShareMatrices) {
  const ModelConfig model = small_llama();
  const DefinedInit own(everywhere(drawn("['mul',0,1]")), model);
  const std::vector<Tensor> whole = begun(model, own, {});
  const std::vector<UnitSpec> units = model_layout(model).units;
  for (int64_t rank = 0; rank < 2; ++rank) {
    const TpShape tp = {.size = 2, .rank = rank};
    const std::vector<Tensor> parts = begun(model, own, tp);
    const std::vector<UnitSpec> mine = tp_units(units, tp);
    for (size_t u = 0; u < units.size(); ++u) {
      const UnitLayout layout(units[u]), layout_here(mine[u]);
      for (size_t i = 0; i < units[u].params.size(); ++i) {
        const auto flat = [](const UnitLayout& at, const Tensor& all, size_t view) {
          return all.narrow(0, at.views()[view].begin, numel(at.views()[view].shape));
        };
        const Tensor there = flat(layout, whole[u], i), here = flat(layout_here, parts[u], i);
        for_whole_runs(mine[u].params[i], 0, here.numel(), [&](int64_t at, int64_t from, int64_t n) {
          EXPECT_TRUE(at::equal(here.narrow(0, at, n), there.narrow(0, from, n))) << mine[u].params[i].name;
        });
      }
    }
  }
}

TEST(DefinedInit, RefusesWhatCannotWork) {
  const auto expect_refused = [](const DefinedInitConfig& init, const std::string& part) {
    try {
      DefinedInit(init, small_llama());
      ADD_FAILURE() << "expected an error with: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  DefinedInitConfig without = normal_of(0.02, 2);
  without.formulas.pop_back(), without.code.at = "x.lua:7";
  expect_refused(without,
                 "[init] expected a value for every matrix, got none for model.layers.0.self_attn.o_proj");
  expect_refused(without, "x.lua:7");
  Json other = times(0, 2), several = other;
  other["inputs"][1]["name"] = "gradient";
  expect_refused(everywhere(other),
                 "expected numbers of an element such as normal and uniform, got gradient");
  several["outputs"].push_back({{"name", "more"}, {"node", 0}});
  expect_refused(everywhere(several), "expected one value, got 2 outputs");
}

}  // namespace
}  // namespace tycho
