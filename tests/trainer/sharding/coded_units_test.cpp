// Ranks that gather codes have those of the whole matrices, and gather the same units.
#include "trainer/sharding/coded_units.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/thread_world.h"
#include "trainer/kernels/fp8.h"
#include "trainer/layout/unit_shards.h"

namespace tycho {
namespace {

UnitSpec unit_of(int64_t width) {
  UnitSpec unit{.name = "unit"};
  unit.params = {{.name = "norm", .shape = {width}},
                 {.name = "q", .shape = {48, 64}, .coded = true},
                 {.name = "k", .shape = {16, 64}, .coded = true},
                 {.name = "bias", .shape = {48}}};
  unit.stacks = {{1, 2}};
  return unit;
}

Tensor bytes_of(const Tensor& codes) { return codes.contiguous().view(at::kByte); }

TEST(CodedUnits, HaveTheCodesOfWholeMatrices) {
  const UnitLayout layout(unit_of(64));
  at::manual_seed(4);
  Tensor weights = at::randn({layout.numel()}).to(at::kBFloat16);
  weights[70] = 9;  // of the first rank's part of q
  const Tensor stacked = weights.narrow(0, 64, 64 * 64).view({64, 64});
  for (const int ranks : {2, 3, 4}) {
    ThreadWorld(ranks).run([&](Communicator& world) {
      const auto places = coded_unit_layout(layout.spec(), ranks);
      ASSERT_TRUE(places);
      const int64_t each = shard_elements(layout.numel(), ranks);
      const ShardRange own = shard_range(layout.numel(), ranks, world.rank());
      Tensor params = at::zeros({each}, at::kBFloat16);
      const auto set = [&](const Tensor& values) {
        params.narrow(0, 0, own.size()).copy_(values.narrow(0, own.begin, own.size()));
      };
      CodedUnits units(1, nullptr);
      units.add(0, CodedUnit(layout, *places, world.rank(), params, at::zeros({each * ranks}, at::kBFloat16)),
                world);
      CodedUnit& unit = *units.of(0);
      for (const int64_t version : {1, 2}) {
        const Tensor values = version == 1 ? weights : weights * 3;
        set(values);
        units.make(version);
        for (const GroupedCall& call : unit.gathers()) {
          Tensor out = call.out;
          world.all_gather(out, call.in);
        }
        unit.place();
        const Fp8Matrix wanted =
            to_fp8(version == 1 ? stacked : stacked * 3, false, Fp8Group::kWhole, {}, {48, 16});
        const Views& views = unit.params();
        ASSERT_EQ(views.size(), 10U);  // of four parameters and a stack, and their factors
        EXPECT_TRUE(at::equal(bytes_of(views[4]), bytes_of(wanted.codes_RD)));
        EXPECT_TRUE(at::equal(bytes_of(views[2]), bytes_of(wanted.codes_RD.narrow(0, 48, 16))));
        EXPECT_TRUE(at::equal(views[9], wanted.factors_R));
        EXPECT_TRUE(at::equal(views[6], wanted.factors_R.narrow(0, 0, 48)));
        EXPECT_FALSE(views[5].defined() || views[8].defined());
        EXPECT_TRUE(at::equal(views[0], values.narrow(0, 0, 64)));
        EXPECT_TRUE(at::equal(views[3], values.narrow(0, layout.numel() - 48, 48)));
      }
      units.make(2);  // nothing has changed: not collective
    });
  }
}

TEST(CodedUnits, AreThoseThatAllRanksAlongTpCanGather) {
  ThreadWorld(2).run([](Communicator& tp) {
    const auto alone = make_world_of_one();
    // The second unit of the second rank begins its matrix between multiples of 16 bytes.
    const std::vector<UnitSpec> specs = {unit_of(64), unit_of(tp.rank() == 0 ? 64 : 56)};
    const auto places = CodedUnits::places(specs, {&tp, &tp}, &tp);
    EXPECT_TRUE(places[0]);
    EXPECT_FALSE(places[1]);
    EXPECT_FALSE(CodedUnits::places(specs, {alone.get(), alone.get()}, nullptr)[0]) << "nothing is gathered";
  });
}

}  // namespace
}  // namespace tycho
