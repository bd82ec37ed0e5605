// Layers in fp8 that several ranks share along tp: codes, and so results, are those of one rank.
#include "trainer/models/fp8_linear.h"

#include <gtest/gtest.h>

#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/thread_world.h"
#include "trainer/base/field_types.h"
#include "trainer/kernels/activation.h"

namespace tycho {
namespace {

constexpr int64_t kNumTokens = 24, kInputs = 64;
const std::vector<int64_t> kOutputs = {32, 64};  // two layers that are stacked

/// Results of the three products. dw is fp32, the others are bf16.
struct Results {
  Tensor y_NM, dx_NK, dw;
};
struct Layer {
  Fp8Recipe recipe;
  bool cuts_inputs, in_out;
};
struct Inputs {
  Tensor x_NK, w_MK, dy_NM;
};

/// Numbers whose rows, columns and parts differ in size, so that a scale of a part would be another one.
Inputs inputs_of(int64_t outputs) {
  at::manual_seed(11);
  const auto drawn = [](int64_t rows, int64_t columns) {
    return (at::randn({rows, columns}) * at::randn({rows, 1}).exp() * at::randn({columns}).exp())
        .to(at::kBFloat16);
  };
  return {drawn(kNumTokens, kInputs), drawn(outputs, kInputs), drawn(kNumTokens, outputs)};
}

Results products(const Layer& layer, const std::vector<int64_t>& outputs, const Inputs& in,
                 const ParallelRegion& region) {
  const Fp8Product product = {.view = 0,
                              .outputs = outputs,
                              .inputs = in.x_NK.size(1),
                              .recipe = layer.recipe,
                              .cuts_inputs = layer.cuts_inputs};
  const Fp8Linear linear = {&product, &region};
  const Tensor weight = layer.in_out ? in.w_MK.t().contiguous() : in.w_MK;
  Results made = {at::empty_like(in.dy_NM), at::empty_like(in.x_NK), {}};
  fp8_linear(linear, weight, layer.in_out, in.x_NK, {}, made.y_NM);
  fp8_input_gradient(linear, weight, layer.in_out, in.dy_NM, made.dx_NK);
  if (!has_fp8_weight_gradient(linear)) return made;
  made.dw = at::empty(weight.sizes());
  fp8_weight_gradient(linear, layer.in_out, in.x_NK, in.dy_NM, made.dw, /*add=*/false);
  if (layer.in_out) made.dw = made.dw.t();
  return made;
}

/// Returns a rank's part of each section, one after the other.
Tensor part(const Tensor& whole, int64_t dim, const std::vector<int64_t>& sections, int64_t ranks,
            int64_t rank) {
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (const int64_t n : sections) {
    parts.push_back(whole.narrow(dim, first + n / ranks * rank, n / ranks));
    first += n;
  }
  return at::cat(parts, dim).contiguous();
}

/// Requires that the whole is the sum of parts, where each of them was rounded to bf16. stacked: they are
/// sums over two layers, whose first one was rounded too.
void expect_sum(const std::vector<Tensor>& parts, const Tensor& whole, bool stacked) {
  Tensor sum = at::zeros(whole.sizes()), magnitude = whole.to(at::kFloat).abs();
  for (const Tensor& part : parts) {
    sum += part;
    magnitude += part.to(at::kFloat).abs();
  }
  if (stacked) magnitude += magnitude.max();
  EXPECT_TRUE(((sum - whole.to(at::kFloat)).abs() <= magnitude / 128).all().item<bool>());
}

TEST(Fp8LinearOfCodes, HasTheBitsOfOneThatCastsItsWeight) {
  for (const bool in_out : {false, true}) {
    const std::vector<int64_t> outputs = in_out ? std::vector<int64_t>{96} : kOutputs;
    const Inputs in = inputs_of(96);
    const Layer layer = {Fp8Recipe::kTensorwise, false, in_out};
    const Results cast = products(layer, outputs, in, {});
    const Fp8Product product = {
        .view = 0, .factors = 1, .outputs = outputs, .inputs = kInputs, .recipe = layer.recipe};
    const Tensor weight = in_out ? in.w_MK.t().contiguous() : in.w_MK;
    const Fp8Matrix codes =
        to_fp8(weight, false, Fp8Group::kWhole, {}, in_out ? std::vector<int64_t>{} : outputs);
    const BlockParams at = {.fp8 = {product}};
    const Views views = {codes.codes_RD, codes.factors_R};
    const ParallelRegion region;
    Views none;
    std::vector<Tensor> no_state;
    const PackedDocuments no_documents;
    const BlockActivations act = {none, none, none, {}, no_state, none, {}, no_documents};
    const Fp8Linear linear = fp8_linear_of(at, 0, region, views, act);
    ASSERT_TRUE(linear);
    EXPECT_FALSE(fp8_linear_of(at, 0, region, views)) << "generation has no pass";
    Results made = {at::empty_like(in.dy_NM), at::empty_like(in.x_NK), {}};
    fp8_linear(linear, views[0], in_out, in.x_NK, {}, made.y_NM);
    fp8_input_gradient(linear, views[0], in_out, in.dy_NM, made.dx_NK);
    EXPECT_TRUE(at::equal(made.y_NM, cast.y_NM));
    EXPECT_TRUE(at::equal(made.dx_NK, cast.dx_NK));
  }
}

class Fp8LinearTest : public testing::TestWithParam<Fp8Recipe> {};

TEST_P(Fp8LinearTest, CutsOutputsAsOneRankHasThem) {
  int64_t all = 0;
  for (const int64_t n : kOutputs) all += n;
  for (const bool in_out : {false, true})
    for (const int64_t ranks : {2, 4}) {
      const Layer layer = {GetParam(), false, in_out};
      const Inputs whole = inputs_of(all);
      const Results one = products(layer, kOutputs, whole, {});
      std::vector<Results> of_ranks(static_cast<size_t>(ranks));
      ThreadWorld(static_cast<int>(ranks)).run([&](Communicator& world) {
        const int64_t rank = world.rank();
        std::vector<int64_t> outputs = kOutputs;
        for (int64_t& n : outputs) n /= ranks;
        of_ranks[static_cast<size_t>(rank)] =
            products(layer, outputs,
                     {whole.x_NK, part(whole.w_MK, 0, kOutputs, ranks, rank),
                      part(whole.dy_NM, 1, kOutputs, ranks, rank)},
                     ParallelRegion(world, false));
      });
      std::vector<Tensor> dx_of_ranks;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Results& made = of_ranks[static_cast<size_t>(rank)];
        EXPECT_TRUE(at::equal(made.y_NM, part(one.y_NM, 1, kOutputs, ranks, rank))) << rank;
        if (one.dw.defined()) {
          EXPECT_TRUE(at::equal(made.dw, part(one.dw, 0, kOutputs, ranks, rank))) << rank;
        }
        dx_of_ranks.push_back(made.dx_NK);
      }
      expect_sum(dx_of_ranks, one.dx_NK, /*stacked=*/true);
    }
}

TEST_P(Fp8LinearTest, CutsInputsAsOneRankHasThem) {
  for (const bool in_out : {false, true})
    for (const int64_t ranks : {2, 4}) {
      const Layer layer = {GetParam(), true, in_out};
      const Inputs whole = inputs_of(48);
      const Results one = products(layer, {48}, whole, {});
      std::vector<Results> of_ranks(static_cast<size_t>(ranks));
      ThreadWorld(static_cast<int>(ranks)).run([&](Communicator& world) {
        const int64_t rank = world.rank();
        of_ranks[static_cast<size_t>(rank)] =
            products(layer, {48},
                     {part(whole.x_NK, 1, {kInputs}, ranks, rank),
                      part(whole.w_MK, 1, {kInputs}, ranks, rank), whole.dy_NM},
                     ParallelRegion(world, false));
      });
      std::vector<Tensor> y_of_ranks;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Results& made = of_ranks[static_cast<size_t>(rank)];
        EXPECT_TRUE(at::equal(made.dx_NK, part(one.dx_NK, 1, {kInputs}, ranks, rank))) << rank;
        if (one.dw.defined()) {
          EXPECT_TRUE(at::equal(made.dw, part(one.dw, 1, {kInputs}, ranks, rank))) << rank;
        }
        y_of_ranks.push_back(made.y_NM);
      }
      expect_sum(y_of_ranks, one.y_NM, /*stacked=*/false);
    }
}

/// y of a layer whose input is cast by the activation that computes it, or apart; nothing where ranks need
/// each other's magnitudes or tokens.
Tensor product_of_relu(const Layer& layer, const Inputs& in, const ParallelRegion& region, bool along) {
  const Fp8Product product = {.view = 0,
                              .outputs = {in.w_MK.size(0)},
                              .inputs = in.x_NK.size(1),
                              .recipe = layer.recipe,
                              .cuts_inputs = layer.cuts_inputs};
  Fp8Linear linear = {&product, &region};
  Tensor x = at::empty_like(in.x_NK), y = at::empty_like(in.dy_NM);
  activation(Activation::kRelu, in.x_NK, x);
  std::optional<Fp8Matrix> made;
  if (along) {
    std::optional<RowCast> cast = input_cast(linear, x);
    if (!cast) return {};
    Tensor again = at::empty_like(x);
    activation_with_cast(Activation::kRelu, /*gated=*/false, Tensor(), in.x_NK, again, *cast);
    EXPECT_TRUE(at::equal(again, x));
    made = finished(cast, again);
    linear.x = &*made;
    x.fill_(NAN);  // is not read
  }
  fp8_linear(linear, in.w_MK, layer.in_out, x, {}, y);
  return y;
}

TEST_P(Fp8LinearTest, TakesAnInputThatWasCastWhereItWasComputed) {
  const Inputs in = inputs_of(48);
  for (const bool cuts_inputs : {false, true}) {
    const Layer layer = {GetParam(), cuts_inputs, false};
    const Tensor apart = product_of_relu(layer, in, {}, false);
    EXPECT_TRUE(at::equal(product_of_relu(layer, in, {}, true), apart));
    for (const bool sequence : {false, true})
      ThreadWorld(2).run([&](Communicator& world) {
        const Tensor along = product_of_relu(layer, in, ParallelRegion(world, sequence), true);
        EXPECT_EQ(along.defined(), !cuts_inputs && !sequence);
      });
  }
}

TEST_P(Fp8LinearTest, NanOfOneRankReachesAllRanks) {
  const Layer layer = {GetParam(), true, false};
  Inputs whole = inputs_of(48);
  whole.x_NK[5][kInputs - 1] = NAN;
  std::vector<Tensor> of_ranks(2);
  ThreadWorld(2).run([&](Communicator& world) {
    const int64_t rank = world.rank();
    of_ranks[static_cast<size_t>(rank)] = products(layer, {48},
                                                   {part(whole.x_NK, 1, {kInputs}, 2, rank),
                                                    part(whole.w_MK, 1, {kInputs}, 2, rank), whole.dy_NM},
                                                   ParallelRegion(world, false))
                                              .y_NM;
  });
  for (const Tensor& y_NM : of_ranks) EXPECT_TRUE(at::isnan(y_NM[5]).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Recipes, Fp8LinearTest,
                         testing::Values(Fp8Recipe::kTensorwise, Fp8Recipe::kRowwise,
                                         Fp8Recipe::kRowwiseWithGwHp),
                         [](const auto& info) { return std::string(enum_name(info.param)); });

}  // namespace
}  // namespace tycho
