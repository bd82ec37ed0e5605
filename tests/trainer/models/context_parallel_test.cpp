// Ranks that share each sequence compute what one rank does: every option of every family, loss and
// gradients.
#include <gtest/gtest.h>

#include "tests/trainer/comm/recording.h"
#include "tests/trainer/comm/thread_world.h"
#include "tests/trainer/models/shared_model.h"
#include "trainer/layout/cp_part.h"
#include "trainer/layout/tp_parts.h"

namespace tycho {
namespace {

/// Sequences that two, three and four ranks can share, shorter than any model allows.
constexpr BatchShape kShape = {2, 24};

class ContextParallel : public SharedModel {
 protected:
  void SetUp() override {
    SharedModel::SetUp();
    take(GetParam().config, kShape);
  }
  /// With keys and values gathered, and on a ring.
  void expect_both_as_one_rank(Sharing sharing) {
    expect_as_one_rank(sharing);
    SCOPED_TRACE("ring");
    sharing.ring = true;
    expect_as_one_rank(sharing);
  }
  /// Documents whose ends are no ends of parts.
  void pack_documents() {
    documents_ = at::zeros({shape_.batch, shape_.seq}, at::kInt);
    documents_.narrow(1, shape_.seq / 3 + 1, shape_.seq - shape_.seq / 3 - 1).fill_(1);
    documents_.narrow(1, shape_.seq - 3, 3).fill_(2);
    documents_ = documents_.view(-1);
  }
};

TEST_P(ContextParallel, ComputesWhatOneRankDoes) {
  for (const int64_t cp : {2, 3, 4}) expect_both_as_one_rank({.name = "alone", .tp = 1, .cp = cp});
}

TEST_P(ContextParallel, ComputesWhatOneRankDoesTogetherWithOtherAxes) {
  expect_both_as_one_rank({.name = "matrices", .tp = 2, .cp = 2});
  expect_both_as_one_rank({.name = "matrices, all tokens", .tp = 2, .cp = 2, .sequence = false});
  expect_both_as_one_rank({.name = "shards", .tp = 1, .cp = 2, .shard = 2, .micro_batches = 2});
  expect_both_as_one_rank({.name = "kept gradients and copies",
                           .tp = 1,
                           .cp = 2,
                           .replicate = 2,
                           .keep_grads = true,
                           .micro_batches = 2});
}

TEST_P(ContextParallel, ComputesWhatOneRankDoesWhenBlocksComputeAgain) {
  expect_both_as_one_rank({.name = "all", .tp = 1, .cp = 2, .recompute = {Recompute::kFull, 1}});
  expect_both_as_one_rank({.name = "cheap", .tp = 1, .cp = 2, .recompute = {Recompute::kSelective, 1}});
}

TEST_P(ContextParallel, ComputesWhatOneRankDoesInNarrowerRows) {
  expect_both_as_one_rank({.name = "alone", .tp = 1, .cp = 2, .width = 16});
  expect_as_one_rank({.name = "matrices", .tp = 2, .cp = 2, .width = 8});
}

TEST_P(ContextParallel, KeepsDocumentsApart) {
  pack_documents();
  expect_both_as_one_rank({.name = "two", .tp = 1, .cp = 2});
  expect_both_as_one_rank({.name = "four", .tp = 1, .cp = 4});
}

/// Bytes of keys and values that a rank got from others.
int64_t received(const Schedule& schedule) {
  int64_t bytes = 0;
  for (const RecordedCall& call : schedule)
    if (call.op == "all_gather" || call.op == "reduce_scatter")
      bytes += call.num_bytes * (static_cast<int64_t>(call.ranks.size()) - 1);
    else if (call.op == "recv")
      bytes += call.num_bytes;
  return bytes;
}

TEST_P(ContextParallel, MovesWhatThePlanCounts) {
  for (const CpShape& cp :
       {CpShape{2}, CpShape{4}, CpShape{2, 0, true}, CpShape{3, 0, true}, CpShape{4, 0, true}})
    for (const Recompute mode :
         {Recompute::kNone, Recompute::kNorms, Recompute::kSelective, Recompute::kFull}) {
      const int size = static_cast<int>(cp.size);
      const RecomputeConfig recompute = {mode, 1};
      std::vector<Schedule> schedules(static_cast<size_t>(size));
      ThreadWorld(size).run([&](Communicator& world) {
        Schedule& schedule = schedules[static_cast<size_t>(world.rank())];
        RecordingCommunicator recording(world, schedule);
        // Parameters are whole on every rank, so that all that moves is keys and values.
        LocalUnits units(layout_.units, at::kFloat, at::kCPU, UnitUse::kTrain);
        for (size_t u = 0; u < layout_.units.size(); ++u)
          Tensor(units.gathered()[u].flat_params()).copy_(whole_->gathered()[u].flat_params());
        const auto alone = make_world_of_one();
        const ParallelRegion region(*alone, true, ContextRegion(recording, shape_.seq, cp.ring));
        Model model(config_, units, shape_, at::kFloat, at::kCPU, recompute, region);
        schedule.clear();
        step(model, units, 0, 1);
        EXPECT_EQ(received(schedule), cp_traffic(decoder_spec(config_), layout_.units, shape_, recompute, 4,
                                                 cp, whole_model(layout_.num_blocks)))
            << size << " ranks, ring " << cp.ring << ", recompute " << static_cast<int>(mode);
        // Messages alone, and nothing of all ranks at once.
        const auto is_message = [](const RecordedCall& call) {
          return call.op == "send" || call.op == "recv";
        };
        EXPECT_TRUE(!cp.ring || std::all_of(schedule.begin(), schedule.end(), is_message));
      });
      EXPECT_EQ(first_fault(schedules), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Families, ContextParallel, testing::ValuesIn(model_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

/// Options that those models leave out.
class ContextParallelOptions : public ContextParallel {};

TEST_P(ContextParallelOptions, DropWhatOneRankDrops) {
  expect_both_as_one_rank({.name = "dropout", .tp = 1, .cp = 2, .micro_batches = 2});
  expect_both_as_one_rank({.name = "and again", .tp = 1, .cp = 3, .recompute = {Recompute::kFull, 1}});
  expect_both_as_one_rank({.name = "with matrices", .tp = 2, .cp = 2, .shard = 2});
  expect_both_as_one_rank({.name = "all tokens", .tp = 3, .cp = 2, .sequence = false});
}

TEST_P(ContextParallelOptions, DropInputsOfAdaptersAsOneRankDoes) {
  ModelConfig adapted = GetParam().config;
  adapted.lora = {.rank = 3, .alpha = 2, .dropout = 0.4};
  take(adapted, kShape);
  expect_both_as_one_rank({.name = "two", .tp = 1, .cp = 2, .micro_batches = 2});
  expect_both_as_one_rank({.name = "three, shards", .tp = 1, .cp = 3, .shard = 2});
  expect_both_as_one_rank({.name = "and again", .tp = 1, .cp = 2, .recompute = {Recompute::kFull, 1}});
}

TEST_P(ContextParallelOptions, FreezeWhatOneRankFreezes) {
  const auto matrices = [](const ParamSpec& param) { return param.shape.size() == 2; };
  expect_both_as_one_rank({.name = "matrices", .tp = 1, .cp = 2, .micro_batches = 2, .frozen = matrices});
}

// Parts of 66 tokens begin and end within attention's tiles of 64.
TEST_P(ContextParallelOptions, CutTilesAnywhere) {
  LlamaConfig long_rows;
  long_rows.width = 32, long_rows.layers = 1, long_rows.heads = 4, long_rows.kv_heads = 2,
  long_rows.ffn_width = 48, long_rows.vocab_size = 50, long_rows.rope_theta = 10000;
  take({long_rows}, {1, 264});
  expect_both_as_one_rank({.name = "two", .tp = 1, .cp = 2});
  pack_documents();
  expect_both_as_one_rank({.name = "six, documents", .tp = 1, .cp = 6});
}

INSTANTIATE_TEST_SUITE_P(Mpt, ContextParallelOptions,
                         testing::Values(ModelCase{"alibi", {with_dropout(PositionKind::kAlibi)}, kShape},
                                         ModelCase{
                                             "learned", {with_dropout(PositionKind::kLearned)}, kShape}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
