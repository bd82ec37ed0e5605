// Ranks that share every matrix compute what one rank does: every option of every family, loss and gradients.
#include <gtest/gtest.h>

#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>

#include "tests/trainer/comm/recording.h"
#include "tests/trainer/comm/thread_world.h"
#include "tests/trainer/models/shared_model.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/layout/tp_traffic.h"

namespace tycho {
namespace {

class TensorParallel : public SharedModel {
 protected:
  void expect_planned_traffic();
};

TEST_P(TensorParallel, ComputesWhatOneRankDoes) {
  for (const int64_t tp : {2, 3, 4, 6}) {
    expect_as_one_rank({.name = "with sequence parallel", .tp = tp});
    expect_as_one_rank({.name = "without", .tp = tp, .sequence = false});
  }
}

TEST_P(TensorParallel, ComputesWhatOneRankDoesTogetherWithOtherAxes) {
  for (const bool sequence : {true, false}) {
    expect_as_one_rank({.name = "replicas", .sequence = sequence, .replicate = 2, .micro_batches = 2});
    expect_as_one_rank({.name = "shards", .sequence = sequence, .shard = 2, .micro_batches = 2});
    expect_as_one_rank(
        {.name = "kept gradients", .sequence = sequence, .shard = 2, .keep_grads = true, .micro_batches = 2});
  }
  expect_as_one_rank({.name = "both", .replicate = 2, .shard = 2});
}

TEST_P(TensorParallel, ComputesWhatOneRankDoesWhenBlocksComputeAgain) {
  for (const bool sequence : {true, false}) {
    expect_as_one_rank({.name = "all", .sequence = sequence, .recompute = {Recompute::kFull, 1}});
    expect_as_one_rank({.name = "cheap", .sequence = sequence, .recompute = {Recompute::kSelective, 1}});
  }
}

TEST_P(TensorParallel, ComputesWhatOneRankDoesWithFrozenParameters) {
  const auto frozen = [](const ParamSpec& param) { return param.shape.size() == 1; };
  const auto matrices = [](const ParamSpec& param) { return param.shape.size() == 2; };
  expect_as_one_rank({.name = "vectors", .shard = 2, .micro_batches = 2, .frozen = frozen});
  expect_as_one_rank({.name = "matrices", .micro_batches = 2, .frozen = matrices});
}

/// Bytes that a rank got from others, by what it called.
int64_t received(const Schedule& schedule) {
  double bytes = 0;
  for (const RecordedCall& call : schedule) {
    const auto size = static_cast<double>(call.num_bytes), ranks = static_cast<double>(call.ranks.size());
    if (call.op == "all_gather" || call.op == "reduce_scatter") bytes += size * (ranks - 1);
    if (call.op == "all_reduce") bytes += 2 * size * (ranks - 1) / ranks;
  }
  return static_cast<int64_t>(bytes);
}

void TensorParallel::expect_planned_traffic() {
  const DecoderSpec spec = decoder_spec(config_);
  for (const int64_t size : {2, 4})
    for (const bool sequence : {true, false})
      for (const Recompute mode :
           {Recompute::kNone, Recompute::kNorms, Recompute::kSelective, Recompute::kFull}) {
        if (!divides(spec, size) || shape_.tokens() % size != 0) continue;
        const RecomputeConfig recompute = {mode, 1};
        std::vector<Schedule> schedules(static_cast<size_t>(size));
        ThreadWorld(static_cast<int>(size)).run([&](Communicator& world) {
          Schedule& schedule = schedules[static_cast<size_t>(world.rank())];
          RecordingCommunicator recording(world, schedule);
          const Mesh mesh({{1, 1, 1, 1, static_cast<int>(size)}}, recording);
          const ParallelRegion region(recording, sequence);
          const std::vector<UnitSpec> specs = tp_units(layout_.units, region.shape());
          const auto units = store_of(specs, mesh);
          Model model(config_, *units, shape_, at::kFloat, at::kCPU, recompute, region);
          schedule.clear();
          step(model, *units, 0, 1);
          const TpTraffic planned =
              tp_traffic(spec, specs, shape_, recompute, 4, region.shape(), whole_model(spec.layers));
          const int64_t all = planned.activations + planned.losses + tp_gradient_bytes(specs, region.shape());
          EXPECT_NEAR(static_cast<double>(received(schedule)), static_cast<double>(all), 2)
              << size << " ranks, sequence " << sequence << ", recompute " << static_cast<int>(mode);
        });
        EXPECT_EQ(first_fault(schedules), "");
      }
}

TEST_P(TensorParallel, MovesWhatThePlanCounts) { expect_planned_traffic(); }

TEST_P(TensorParallel, GeneratesWhatOneRankDoes) {
  const auto logits_of = [&](UnitStore& units, const ParallelRegion& region) {
    Decoder decoder(config_, units, 1, 3, at::kFloat, at::kCPU, region);
    decoder.next_logits(tokens_[0].narrow(0, 0, 1).contiguous());
    const Tensor next =
        decoder.next_logits(tokens_[1].narrow(0, 0, 1).contiguous(), {.every_position = true});
    return at::cat({next, logits_of_rows(config_, tokens_, units, region)});
  };
  const Tensor wanted = logits_of(*whole_, {});
  for (const int64_t tp : {2, 3}) {
    if (!divides(decoder_spec(config_), tp)) continue;
    ThreadWorld(static_cast<int>(tp)).run([&](Communicator& world) {
      const Mesh mesh({{1, 1, 1, 1, static_cast<int>(tp)}}, world);
      const ParallelRegion region(world, true);
      const auto units = store_of(tp_units(layout_.units, region.shape()), mesh);
      const Tensor given = logits_of(*units, region);
      ASSERT_EQ(given.sizes(), wanted.sizes());
      EXPECT_LE((given - wanted).abs().max().item<double>(), 1e-4 * wanted.abs().max().item<double>() + 1e-6);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TensorParallel, testing::ValuesIn(model_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

/// Options that those models leave out.
class TensorParallelOptions : public TensorParallel {};

// Of layers back to the stream each rank has some of the inputs: its heads, its hidden features.
TEST_P(TensorParallelOptions, DropInputsOfAdaptersAsOneRankDoes) {
  ModelConfig adapted = GetParam().config;
  adapted.lora = {.rank = 3, .alpha = 2, .dropout = 0.4};
  take(adapted, GetParam().shape);
  for (const bool sequence : {true, false}) {
    expect_as_one_rank({.name = "two", .sequence = sequence, .micro_batches = 2});
    expect_as_one_rank({.name = "three", .tp = 3, .sequence = sequence});
    expect_as_one_rank({.name = "and again", .sequence = sequence, .recompute = {Recompute::kFull, 1}});
  }
  expect_as_one_rank({.name = "shards", .shard = 2});
  LlamaConfig uneven;  // 37 hidden features
  uneven.width = 24, uneven.layers = 1, uneven.heads = 6, uneven.kv_heads = 3, uneven.ffn_width = 37,
  uneven.vocab_size = 67;
  ModelConfig llama = {uneven};
  llama.lora = adapted.lora;
  take(llama, {2, 6});
  for (const int64_t tp : {2, 3}) expect_as_one_rank({.name = "uneven parts", .tp = tp});
}

TEST_P(TensorParallelOptions, DropWhatOneRankDrops) {
  for (const bool sequence : {true, false}) {
    expect_as_one_rank({.name = "dropout", .sequence = sequence, .micro_batches = 2});
    expect_as_one_rank({.name = "dropout on three", .tp = 3, .sequence = sequence});
    expect_as_one_rank({.name = "and again", .sequence = sequence, .recompute = {Recompute::kFull, 1}});
  }
}

TEST_P(TensorParallelOptions, KeepDocumentsApart) {
  documents_ = at::zeros({shape_.batch, shape_.seq}, at::kInt);
  documents_.narrow(1, shape_.seq / 3, shape_.seq - shape_.seq / 3).fill_(1);
  documents_ = documents_.view(-1);
  for (const bool sequence : {true, false}) expect_as_one_rank({.name = "documents", .sequence = sequence});
}

TEST_P(TensorParallelOptions, NormAllHeadsAsOneRankDoes) {
  MptConfig mpt = std::get<MptConfig>(config_.value);
  mpt.qk_ln = true;
  take({mpt}, shape_);
  const auto norms = [](const ParamSpec& param) { return param.shape.size() == 1; };
  for (const bool sequence : {true, false}) {
    expect_as_one_rank({.name = "alone", .sequence = sequence, .micro_batches = 2});
    expect_as_one_rank({.name = "again", .sequence = sequence, .recompute = {Recompute::kFull, 1}});
  }
  expect_as_one_rank({.name = "frozen", .shard = 2, .frozen = norms});
  expect_planned_traffic();
}

INSTANTIATE_TEST_SUITE_P(Mpt, TensorParallelOptions,
                         testing::Values(ModelCase{"alibi", {with_dropout(PositionKind::kAlibi)}, {3, 12}},
                                         ModelCase{
                                             "learned", {with_dropout(PositionKind::kLearned)}, {2, 9}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
