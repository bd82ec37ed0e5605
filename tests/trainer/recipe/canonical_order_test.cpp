// What sums that do not depend on the number of ranks need of a recipe.
#include "trainer/recipe/canonical_order.h"

#include <gtest/gtest.h>

#include "tests/trainer/recipe/problems_after.h"

namespace tycho {
namespace {

std::string problems_with(int64_t num_ranks, const std::function<void(TrainConfig&)>& change = {}) {
  return problems_after(
      [&](TrainConfig& c) {
        c.parallel.reduce = GradientOrder::kCanonical;
        c.global_batch = {24, DurationUnit::kSample}, c.micro_batch = Duration{3, DurationUnit::kSample};
        c.max_duration = {10, DurationUnit::kBatch};
        if (change) change(c);
      },
      num_ranks);
}

auto micro_batch_of(double sequences) {
  return [=](TrainConfig& c) { c.micro_batch = Duration{sequences, DurationUnit::kSample}; };
}

TEST(CanonicalOrder, TakesRanksThatHaveWholeSubtrees) {
  for (const int64_t ranks : {1, 2, 4, 8}) {
    EXPECT_EQ(problems_with(ranks), "") << ranks;
    EXPECT_EQ(problems_with(ranks, [&](TrainConfig& c) { c.parallel.dp_shard = ranks; }), "") << ranks;
  }
  EXPECT_EQ(problems_with(4, [](TrainConfig& c) { c.parallel.dp_shard = 2; }), "");
  const auto tp_cp_and_pp = [](TrainConfig& c) { c.parallel.tp = 2, c.parallel.cp = 2, c.parallel.pp = 2; };
  for (const int64_t ranks : {8, 16, 32, 64}) EXPECT_EQ(problems_with(ranks, tp_cp_and_pp), "") << ranks;
  EXPECT_EQ(
      problems_with(3),
      "parallel.reduce: \"canonical\" works for 1, 2, 4, 8 and so on ranks that read different data, and "
      "this mesh has 3; start 2 ranks, or set parallel.reduce = \"ranks\"");
  EXPECT_EQ(
      problems_with(12, [](TrainConfig& c) { c.parallel.tp = 4; }),
      "parallel.reduce: \"canonical\" works for 1, 2, 4, 8 and so on ranks that read different data, and "
      "this mesh has 3; start 8 ranks, or set parallel.reduce = \"ranks\"");
  EXPECT_EQ(
      problems_with(4, micro_batch_of(4)),
      "micro_batch: parallel.reduce = \"canonical\" needs whole micro-batches on every rank, and each of "
      "4 ranks has 6 sequences of a step, which is not a multiple of 4; write a number that divides 6");
}

TEST(CanonicalOrder, NeedsMicroBatchesOfOneSizeThatIsGiven) {
  EXPECT_EQ(
      problems_with(2, [](TrainConfig& c) { c.micro_batch.reset(); }),
      "micro_batch: parallel.reduce = \"canonical\" needs micro-batches that do not depend on the number "
      "of ranks; write a number, such as 1sp");
  EXPECT_EQ(
      problems_with(1, micro_batch_of(5)),
      "micro_batch: parallel.reduce = \"canonical\" needs micro-batches of one size, and global_batch has "
      "24 sequences, which is not a multiple of 5; write a number that divides 24");
}

TEST(CanonicalOrder, RefusesSumsThatDependOnTheRanks) {
  EXPECT_EQ(problems_with(2, [](TrainConfig& c) { c.attention.deterministic = false; }),
            "attention.deterministic: parallel.reduce = \"canonical\" needs gradients of attention that are "
            "added in a fixed order; leave it true");
  EXPECT_EQ(problems_with(2, [](TrainConfig& c) { c.products.tuned = true; }),
            "products.tuned: parallel.reduce = \"canonical\" needs one algorithm of a product on every mesh, "
            "and each mesh times its own; leave it false");
  EXPECT_EQ(
      problems_with(2, [](TrainConfig& c) { c.parallel.reduce_dtype = Precision::kBf16; }),
      "parallel.reduce_dtype: parallel.reduce = \"canonical\" sums in fp32; write reduce_dtype = \"fp32\"");
  const auto fp8 = [](Fp8Recipe recipe) {
    return [=](TrainConfig& c) { c.precision = Precision::kBf16, c.model.fp8.recipe = recipe; };
  };
  EXPECT_EQ(problems_with(1, fp8(Fp8Recipe::kRowwiseWithGwHp)), "");
  EXPECT_EQ(
      problems_with(1, fp8(Fp8Recipe::kRowwise)),
      "fp8.recipe: parallel.reduce = \"canonical\" needs scales that do not depend on the other tokens of a "
      "pass; write \"rowwise_with_gw_hp\"");
  EXPECT_EQ(problems_with(1, [](TrainConfig& c) { c.clip.adaptive = 0.1; }),
            "clip.adaptive: sums the squares of rows, of which ranks may have parts, and parallel.reduce = "
            "\"canonical\" has no fixed order for these; use clip.norm or clip.value");
  EXPECT_EQ(
      problems_with(2, [](TrainConfig& c) { c.parallel.fast_sums = true; }),
      "parallel.fast_sums: parallel.reduce = \"canonical\" adds in an order of its own; leave fast_sums out");
  EXPECT_EQ(problems_with(1, [](TrainConfig& c) { c.device = DeviceKind::kCuda; }), "");
}

TEST(CanonicalOrder, RefusesOrdersOfSamplesThatDependOnTheRanks) {
  const auto refused = [](const std::string& path) {
    return path +
           ": parallel.reduce = \"canonical\" needs an order of samples that does not depend on the number "
           "of "
           "ranks, and that of compat = \"streaming\" and of batching_method = \"device_per_stream\" does; "
           "leave "
           "these keys out";
  };
  EXPECT_EQ(problems_with(1,
                          [](TrainConfig& c) {
                            std::get<MdsConfig>(c.train_data.value).compat = OrderCompat::kStreaming;
                          }),
            refused("train_data"));
  EXPECT_EQ(
      problems_with(1,
                    [](TrainConfig& c) {
                      MdsConfig data{.local_dir = "more"};
                      data.compat = OrderCompat::kStreaming;
                      c.data_stages = {{.name = "late", .start = {5, DurationUnit::kBatch}, .data = {}}};
                      c.data_stages[0].data.value = data;
                    }),
      refused("data_stages.late"));
}

}  // namespace
}  // namespace tycho
