// Ranks that gather codes of fp8 compute what they do when they gather bf16, bit for bit, in every family.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/late_world.h"
#include "tests/trainer/comm/thread_world.h"
#include "tests/trainer/models/model_cases.h"
#include "trainer/layout/coded_unit.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/gathered_bytes.h"
#include "trainer/models/decoder.h"
#include "trainer/models/model.h"
#include "trainer/sharding/sharded_units.h"

namespace tycho {
namespace {

/// How ranks share a model, and what they gather.
struct Gather {
  int ranks = 2;
  bool codes = false, keep_params = false;
  RecomputeConfig recompute = {};
};
/// Results of all ranks, and the number of bytes that one rank has gathered.
struct Seen {
  std::vector<std::vector<Tensor>> tensors;
  int64_t gathered = 0;
};

ModelConfig in_fp8(ModelConfig config, bool codes) {
  config.fp8.recipe = Fp8Recipe::kTensorwise;
  config.fp8.gather = codes;
  return config;
}

int64_t num_coded(const ModelConfig& config, int64_t ranks) {
  int64_t count = 0;
  for (const UnitSpec& unit : model_layout(in_fp8(config, true)).units)
    count += coded_unit_layout(unit, ranks).has_value();
  return count;
}

class CodedGather : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    const ModelLayout layout = model_layout(GetParam().config);
    for (int i = 0; i < 10; ++i)
      tokens_.push_back(at::randint(layout.vocab_size, {GetParam().shape.tokens()}, at::kInt));
    for (const UnitSpec& unit : layout.units) weights_.push_back(at::randn({unit.numel()}).mul_(0.1));
  }

  MicroBatch micro_batch(int64_t i, bool first, bool last) const {
    return numbered_micro_batch(tokens_, i, first, last);
  }
  void fill(UnitStore& units) const {
    for (size_t u = 0; u < weights_.size(); ++u) {
      const OwnedRange& range = units.owned()[u];
      Tensor(range.weights()).copy_(weights_[u].narrow(0, range.begin, range.size()));
      range.refresh_from_master();
    }
  }
  static void update(UnitStore& units) {
    for (const OwnedRange& range : units.owned()) {
      if (!range.grads.defined()) continue;
      Tensor(range.master).add_(range.grads.narrow(0, 0, range.size()), -0.05);
      range.refresh_from_master();
    }
  }

  void look(const ModelConfig& config, UnitStore& units, Communicator& world, const Gather& gather,
            std::vector<Tensor>& seen) const {
    Model model(config, units, GetParam().shape, at::kBFloat16, at::kCPU, gather.recompute);
    const Tensor weight_1 = at::full({1}, 1.0 / 64, at::kFloat);
    const int64_t first = 2 * world.rank();
    for (int step = 0; step < 2; ++step) {
      for (int64_t i = 0; i < 2; ++i)
        seen.push_back(model.forward_backward(micro_batch(first + i, i == 0, i == 1), weight_1).clone());
      units.finish();
      for (int u = 0; u < units.num_units(); ++u)
        for (size_t i = 0; i < units.layout(u).spec().params.size(); ++i)
          if (const Tensor grad = units.grad(u, i); grad.defined()) seen.push_back(grad);
      update(units);
      if (step == 1) break;
      const MicroBatch micro = micro_batch(8, true, true);
      seen.push_back(model.losses(micro.tokens_N, micro.targets_N).clone());
      Decoder decoder(config, units, 1, 2, at::kBFloat16, at::kCPU);  // of weights in bf16
      seen.push_back(decoder.next_logits(micro.tokens_N.narrow(0, 0, 1)).clone());
      seen.push_back(units.param(1, 0));
    }
  }

  Seen train(const Gather& gather) const {
    const ModelConfig config = in_fp8(GetParam().config, gather.codes);
    const ModelLayout layout = model_layout(config);
    Seen seen;
    seen.tensors.resize(static_cast<size_t>(gather.ranks));
    const ShardRules rules{gather.ranks, gather.keep_params, false, layout.tied};
    ThreadWorld(gather.ranks).run([&](Communicator& world) {
      LateWorld late(world);
      const auto alone = make_world_of_one();
      ShardedUnits units(layout.units, at::kBFloat16, at::kCPU, UnitUse::kTrain, rules,
                         {[&](const UnitSpec&) -> UnitGroup {
                           return {late, *alone};
                         }});
      fill(units);
      look(config, units, late, gather, seen.tensors[static_cast<size_t>(world.rank())]);
      EXPECT_EQ(late.in_flight, 0);
      units.owned();  // nothing is gathered from here on
      Model model(config, units, GetParam().shape, at::kBFloat16, at::kCPU, gather.recompute);
      late.traffic = {};
      model.forward_backward(micro_batch(0, true, true), at::ones({1}));
      units.finish();
      EXPECT_EQ(late.traffic.gathered, gathered_bytes(layout.units, rules, 1, 2)) << "what tycho plan counts";
      if (world.rank() == 0) seen.gathered = late.traffic.gathered;
    });
    return seen;
  }

  void expect_same_bits(const char* what, Gather gather) const {
    SCOPED_TRACE(what);
    const Seen plain = train(gather);
    gather.codes = true;
    const Seen coded = train(gather);
    EXPECT_LT(coded.gathered, plain.gathered);
    for (size_t rank = 0; rank < plain.tensors.size(); ++rank) {
      ASSERT_EQ(coded.tensors[rank].size(), plain.tensors[rank].size());
      for (size_t i = 0; i < plain.tensors[rank].size(); ++i)
        ASSERT_TRUE(at::equal(coded.tensors[rank][i], plain.tensors[rank][i]))
            << "rank " << rank << ", " << i;
    }
  }

  std::vector<Tensor> tokens_, weights_;
};

TEST_P(CodedGather, HasTheBitsOfAGatherInBf16) {
  if (num_coded(GetParam().config, 2) == 0) GTEST_SKIP() << "too little of it multiplies in fp8";
  expect_same_bits("two ranks", {});
  expect_same_bits("blocks compute again", {.ranks = 3, .recompute = {Recompute::kFull, 1}});
  expect_same_bits("parameters are kept", {.ranks = 4, .keep_params = true});
}

/// The cases of all models, with sizes that fp8 divides where a family lets them be chosen.
std::vector<ModelCase> cases() {
  std::vector<ModelCase> all;
  for (const ModelCase& one : model_cases()) {
    ModelCase wide = one;
    std::visit(
        [](auto& model) {
          model.width = 16 * model.heads;
          if constexpr (requires { model.ffn_width = int64_t{}; }) model.ffn_width = 96;
          if constexpr (requires { model.head_width = int64_t{}; })
            if (model.head_width != 0) model.head_width = 16;
        },
        wide.config.value);
    const bool fits = fp8_problems(decoder_spec(in_fp8(wide.config, true)), 1).empty();
    all.push_back(fits ? wide : one);
  }
  return all;
}

TEST(CodedGatherCases, MostFamiliesAreGathered) {
  int64_t coded = 0;
  std::string others;
  for (const ModelCase& one : cases()) {
    const int64_t count = num_coded(one.config, 2);
    coded += count > 0;
    if (count == 0) others += std::string(" ") + one.name;
  }
  std::printf("%d of %d:%s\n", static_cast<int>(coded), static_cast<int>(cases().size()), others.c_str());
  EXPECT_GE(2 * coded, static_cast<int64_t>(cases().size()));
}

INSTANTIATE_TEST_SUITE_P(Families, CodedGather, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
