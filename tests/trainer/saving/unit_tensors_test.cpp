// Weights and state on their way to a checkpoint and back, where ranks own parts of units.
#include "trainer/saving/unit_tensors.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

std::vector<UnitSpec> sharded_model() {
  UnitSpec embedding{.name = "embedding"}, block{.name = "block"}, head{.name = "head"};
  embedding.params = {{"embedding.weight", {13, 6}, {Init::Kind::kNormal, 0.5}}};
  block.params = {{"norm", {6}, {Init::Kind::kOnes, 0}, false},
                  {"matrix", {9, 6}, {Init::Kind::kNormal, 0.5}},
                  {"bias", {9}, {Init::Kind::kUniform, 0.5}, false}};
  head.params = {{"head.weight", {13, 6}, {Init::Kind::kNormal, 0.5}}};
  return {embedding, block, head};
}

/// One of `num` ranks that share the elements of every unit out, a little unevenly.
struct ShardOwner {
  ShardOwner(int64_t rank, int64_t num, at::ScalarType dtype) {
    for (const UnitSpec& spec : sharded_model())
      units.emplace_back(UnitLayout(spec), dtype, at::kCPU, UnitUse::kTrain);
    for (const GatheredUnit& unit : units) {
      const int64_t numel = unit.layout().numel(), each = numel / num + 1;
      ranges.push_back(
          own_range(unit, std::min(numel, rank * each), std::min(numel, (rank + 1) * each), UnitUse::kTrain));
    }
    optimizer = make_optimizer(OptimizerConfig{AdamWConfig{}}, ranges);
  }
  /// Numbers that say what they are: which buffer, parameter and element.
  void fill() {
    for (const FlatState& state : flat_states(ranges, optimizer.get()))
      for (const Extent& e : *state.extents)
        state.flat.narrow(0, e.begin, e.size()).copy_(numbers_of(state.buffer, e));
    for (const OwnedRange& range : ranges) range.refresh_from_master();
  }
  static Tensor numbers_of(const std::string& buffer, const Extent& e) {
    const size_t code = 1000 * e.spec->name.size() + 100000 * buffer.size();
    return at::arange(e.first, e.first + e.size()).to(at::kFloat).add(static_cast<double>(code));
  }
  void expect_filled() {
    for (const FlatState& state : flat_states(ranges, optimizer.get()))
      for (const Extent& e : *state.extents)
        EXPECT_TRUE(at::equal(state.flat.narrow(0, e.begin, e.size()), numbers_of(state.buffer, e)))
            << state.buffer << " " << e.spec->name;
    for (const OwnedRange& range : ranges)
      EXPECT_TRUE(at::equal(range.params, range.master.to(range.params.scalar_type())));
  }
  std::vector<TensorBytes> tensors() {
    std::vector<TensorBytes> all;
    for (const FlatState& state : flat_states(ranges, optimizer.get()))
      for (TensorBytes& tensor : unit_tensor_bytes(state, state.flat)) all.push_back(std::move(tensor));
    return all;
  }
  std::vector<GatheredUnit> units;
  std::vector<OwnedRange> ranges;
  std::unique_ptr<Optimizer> optimizer;
};

CheckpointInfo save_by_ranks(const std::string& dir, int64_t num_ranks) {
  std::vector<ShardOwner> ranks;
  for (int64_t r = 0; r < num_ranks; ++r) {
    ranks.emplace_back(r, num_ranks, at::kFloat);
    ranks.back().fill();
  }
  CheckpointStore store(real_files(), dir, 0, 1);
  return store.save({.step = 1}, 0, [&](const std::string& folder) {
    std::vector<WrittenShard> shards;
    for (int64_t r = 0; r < num_ranks; ++r)
      shards.push_back(write_shard(real_files(), folder, rank_file_name(static_cast<int>(r)),
                                   ranks[static_cast<size_t>(r)].tensors()));
    return shards;
  });
}

TEST(UnitTensors, SavedByAnyNumberOfRanksLoadedByAnyOther) {
  for (const int64_t saved_by : {1, 2, 3, 7}) {
    const TempDir dir;
    const CheckpointReader reader(find_checkpoint(save_by_ranks(dir.path(), saved_by).path));
    reader.verify();
    EXPECT_EQ(reader.names().size(), 3 * 5u) << "pieces count once";
    for (const int64_t loaded_by : {1, 2, 5})
      for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
        for (int64_t r = 0; r < loaded_by; ++r) {
          SCOPED_TRACE(fmt::format("{} -> rank {} of {}", saved_by, r, loaded_by));
          ShardOwner rank(r, loaded_by, dtype);
          check_fit(reader, rank.ranges, rank.optimizer.get());
          load_tensors(reader, rank.ranges, rank.optimizer.get());
          rank.expect_filled();
        }
  }
}

TEST(UnitTensors, OfAWholeUnitAreWholeAndOfAPartArePieces) {
  ShardOwner one(0, 1, at::kFloat), first(0, 2, at::kFloat);
  for (const TensorBytes& tensor : one.tensors()) EXPECT_TRUE(tensor.global_shape.empty()) << tensor.name;
  std::string text;
  for (const TensorBytes& tensor : first.tensors())
    if (!tensor.name.starts_with("optimizer")) text += tensor.name + box_text(tensor.box()) + "; ";
  // 78 / 2 + 1 = 40 elements of embedding and head, 69 / 2 + 1 = 35 of the block: 29 of the matrix.
  EXPECT_EQ(
      text,
      "embedding.weight[0:6, 0:6]; embedding.weight[6:7, 0:4]; norm[0:6]; matrix[0:4, 0:6]; matrix[4:5, "
      "0:5]; head.weight[0:6, 0:6]; head.weight[6:7, 0:4]; ");
}

TEST(UnitTensors, FirstWeightsOfPartsAreThoseOfTheWhole) {
  ShardOwner whole(0, 1, at::kFloat);
  for (const OwnedRange& range : whole.ranges) initialise(range, 5);
  for (int64_t r = 0; r < 3; ++r) {
    ShardOwner part(r, 3, at::kFloat);
    for (size_t u = 0; u < part.ranges.size(); ++u) {
      const OwnedRange& mine = part.ranges[u];
      initialise(mine, 5);
      EXPECT_TRUE(at::equal(mine.params, whole.ranges[u].params.narrow(0, mine.begin, mine.size())))
          << r << u;
    }
  }
}

}  // namespace
}  // namespace tycho
