// Stages on several ranks compute what one rank does: every option of every family, loss and gradients.
#include "trainer/models/pipeline.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/late_world.h"
#include "tests/trainer/comm/recording.h"
#include "tests/trainer/comm/thread_world.h"
#include "tests/trainer/models/shared_model.h"
#include "trainer/comm/mesh.h"
#include "trainer/layout/stages.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/models/model.h"
#include "trainer/plan/plan.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {
namespace {

struct Cut {
  const char* name;
  int64_t stages = 2;
  PipelineSchedule schedule = PipelineSchedule::k1f1b;
  int64_t chunks = 1;
  std::vector<int64_t> layers = {};
  int tp = 1, shard = 1, replicate = 1;
  bool keep_grads = false;
  int micro_batches = 3;  // of each rank that reads data of its own
  RecomputeConfig recompute = {};
  std::function<bool(const UnitSpec&, const ParamSpec&)> frozen = {};
  bool narrow = false;  // rows lose their last token
};

class PipelineStages : public SharedModel {
 protected:
  void SetUp() override {
    SharedModel::SetUp();
    train_.model = config_;
    train_.seq_len = shape_.seq;
  }

  std::vector<MicroBatch> micro_batches(int64_t first, int64_t count, int64_t width = 0) const {
    std::vector<MicroBatch> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(micro_batch(first + i, i == 0, i + 1 == count, width));
    return all;
  }
  static Tensor weight() { return at::full({1}, 1.0 / 64, at::kFloat); }
  bool can_be(const Cut& cut) {
    const DecoderSpec spec = decoder_spec(config_);
    if (!divides(spec, cut.tp) || shape_.tokens() % cut.tp != 0) return false;
    if (cut.stages * cut.chunks > spec.layers) return false;
    train_.parallel.pp = cut.stages, train_.parallel.pp_chunks = cut.chunks;
    train_.parallel.pp_schedule = cut.schedule, train_.parallel.pp_layers = cut.layers;
    return stage_problems(train_).empty();
  }
  void expect_as_one_rank(const Cut& cut);

  TrainConfig train_;
  int num_tried_ = 0;
};

void PipelineStages::expect_as_one_rank(const Cut& cut) {
  SCOPED_TRACE(cut.name);
  if (!can_be(cut) || (cut.narrow && shape_.seq == 1)) return;
  ++num_tried_;
  const int64_t width = cut.narrow ? shape_.seq - 1 : shape_.seq;
  std::vector<UnitSpec> whole = layout_.units;
  for (UnitSpec& unit : whole)
    for (ParamSpec& param : unit.params) param.frozen = cut.frozen && cut.frozen(unit, param);
  const MeshShape mesh_shape{{static_cast<int>(cut.stages), cut.replicate, cut.shard, 1, cut.tp}};
  const int data_ranks = cut.replicate * cut.shard;
  LocalUnits one(whole, at::kFloat, at::kCPU, UnitUse::kTrain);
  for (size_t u = 0; u < whole.size(); ++u)
    Tensor(one.gathered()[u].flat_params()).copy_(whole_->gathered()[u].flat_params());
  Model alone(config_, one, shape_, at::kFloat, at::kCPU, cut.recompute);
  double wanted_loss = 0;
  for (const MicroBatch& micro : micro_batches(0, int64_t{data_ranks} * cut.micro_batches, width))
    wanted_loss += alone.at_width(width).forward_backward(micro, weight()).item<double>();
  const Tensor wanted_losses = alone.losses(tokens_[0], micro_batch(0, true, true).targets_N).clone();
  std::atomic<double> loss = 0;
  std::vector<Schedule> schedules(static_cast<size_t>(mesh_shape.num_ranks()));
  ThreadWorld(mesh_shape.num_ranks()).run([&](Communicator& world) {
    RecordingCommunicator recording(world, schedules[static_cast<size_t>(world.rank())]);
    LateWorld late(recording);
    const Mesh mesh(mesh_shape, late);
    const ParallelRegion region(mesh.group(Axis::kTp), true);
    const PipelineStage stage(stage_part(train_, mesh.coordinate(Axis::kPp), cut.micro_batches),
                              mesh.group(Axis::kPp));
    const std::vector<UnitSpec> specs =
        stage_units(tp_units(whole, region.shape()), stage.part(layout_.num_blocks), layout_.tied);
    const auto units = store_of(specs, mesh, cut.keep_grads);
    Model model(config_, *units, shape_, at::kFloat, at::kCPU, cut.recompute, region, stage);
    Pipeline pipeline(model, stage, pipeline_shape(train_.parallel, cut.micro_batches));
    TiedCopies tied(stage, layout_.tied);
    const int64_t data_rank = mesh.group(kDataAxes).rank();
    for (int repeat = 0; repeat < 2; ++repeat) {  // nothing of a step is left for the next one
      const int64_t now = repeat == 0 ? shape_.seq : width;
      const Tensor own = pipeline.forward_backward(
          model.at_width(now), micro_batches(data_rank * cut.micro_batches, cut.micro_batches, now),
          weight());
      units->finish();
      tied.sum(*units);
      if (repeat == 1 && mesh.coordinate(Axis::kTp) == 0) loss += own.sum().item<double>();
    }
    expect_same_gradients(*units, specs, one, world.rank());
    const Tensor losses = model.losses(tokens_[0], micro_batch(0, true, true).targets_N);
    if (stage.part(0).is_last())
      EXPECT_LE((losses - wanted_losses).abs().max().item<double>(), 2e-5);
    else
      EXPECT_EQ(losses.abs().max().item<double>(), 0);
  });
  EXPECT_NEAR(loss / wanted_loss, 1, 1e-6);
  EXPECT_EQ(first_fault(schedules), "");
}

TEST_P(PipelineStages, ComputeWhatOneRankDoes) {
  for (const PipelineSchedule schedule : {PipelineSchedule::kGpipe, PipelineSchedule::k1f1b})
    for (const int64_t stages : {2, 3, 4})
      for (const int micro_batches : {1, 2, 5})
        expect_as_one_rank(
            {.name = "stages", .stages = stages, .schedule = schedule, .micro_batches = micro_batches});
}

TEST_P(PipelineStages, ComputeWhatOneRankDoesInNarrowerRows) {
  expect_as_one_rank({.name = "narrow", .narrow = true});
  expect_as_one_rank({.name = "narrow, gpipe", .schedule = PipelineSchedule::kGpipe, .narrow = true});
}

TEST_P(PipelineStages, ComputeWhatOneRankDoesInSeveralChunks) {
  for (const int64_t stages : {2, 3})
    for (const int micro_batches : {1, 4, 5})
      expect_as_one_rank({.name = "chunks",
                          .stages = stages,
                          .schedule = PipelineSchedule::kInterleaved,
                          .chunks = 2,
                          .micro_batches = micro_batches});
}

TEST_P(PipelineStages, ComputeWhatOneRankDoesTogetherWithOtherAxes) {
  expect_as_one_rank({.name = "replicas", .replicate = 2});
  expect_as_one_rank({.name = "shards", .shard = 2});
  expect_as_one_rank({.name = "kept gradients", .shard = 2, .keep_grads = true});
  expect_as_one_rank({.name = "tensor parallel", .tp = 2});
  expect_as_one_rank({.name = "all", .tp = 2, .shard = 2, .micro_batches = 2});
}

TEST_P(PipelineStages, ComputeWhatOneRankDoesWhenBlocksComputeAgain) {
  for (const Recompute mode : {Recompute::kNorms, Recompute::kSelective, Recompute::kFull})
    expect_as_one_rank({.name = "again", .recompute = {mode, 1}});
}

TEST_P(PipelineStages, ComputeWhatOneRankDoesWithFrozenParameters) {
  const auto first_blocks = [&](const UnitSpec& unit, const ParamSpec&) {
    return unit.name != layout_.units.back().name &&
           unit.name != layout_.units[layout_.units.size() - 2].name;
  };
  expect_as_one_rank({.name = "vectors", .frozen = [](const UnitSpec&, const ParamSpec& param) {
                        return param.shape.size() == 1;
                      }});
  expect_as_one_rank({.name = "all before the last block", .frozen = first_blocks});
  expect_as_one_rank({.name = "a sharded one", .shard = 2, .frozen = first_blocks});
}

/// What a rank received of a step's messages, and its share of a sum between two: for the first and the last
/// stage's tied embedding.
int64_t received_along_pp(const Schedule& schedule, bool is_tied) {
  int64_t bytes = 0;
  for (const RecordedCall& call : schedule)
    if (call.op == "recv" || (is_tied && call.op == "all_reduce")) bytes += call.num_bytes;
  return bytes;
}

TEST_P(PipelineStages, MoveWhatThePlanCounts) {
  // Where nothing before a stage is trained no gradient is sent to it, which the plan counts all the same.
  const bool has_adapters = decoder_spec(config_).lora.is_used();
  const auto expect_planned = [&](const Cut& cut) {
    SCOPED_TRACE(fmt::format("{}, {} stages", cut.name, cut.stages));
    if (!can_be(cut) || has_adapters) return;
    ++num_tried_;
    train_.precision = Precision::kFp32;
    train_.micro_batch = Duration{static_cast<double>(shape_.batch), DurationUnit::kSample};
    train_.global_batch = {static_cast<double>(shape_.batch * cut.micro_batches * cut.shard),
                           DurationUnit::kSample};
    train_.parallel.dp_shard = cut.shard, train_.parallel.tp = cut.tp;
    const MeshShape mesh_shape{{static_cast<int>(cut.stages), 1, cut.shard, 1, cut.tp}};
    const Plan plan = plan_mesh(train_, {.num_ranks = mesh_shape.num_ranks()});
    int64_t planned = 0;
    for (const ByteItem& item : plan.traffic) planned += item.name == "pp" ? item.num_bytes : 0;
    std::vector<Schedule> schedules(static_cast<size_t>(mesh_shape.num_ranks()));
    ThreadWorld(mesh_shape.num_ranks()).run([&](Communicator& world) {
      const Mesh mesh(mesh_shape, world);
      Schedule& schedule = schedules[static_cast<size_t>(world.rank())];
      RecordingCommunicator along_pp(mesh.group(Axis::kPp), schedule);
      const ParallelRegion region(mesh.group(Axis::kTp), true);
      const PipelineStage stage(stage_part(train_, mesh.coordinate(Axis::kPp), cut.micro_batches), along_pp);
      const auto units = store_of(
          stage_units(tp_units(layout_.units, region.shape()), stage.part(layout_.num_blocks), layout_.tied),
          mesh, cut.keep_grads);
      Model model(config_, *units, shape_, at::kFloat, at::kCPU, {}, region, stage);
      Pipeline pipeline(model, stage, pipeline_shape(train_.parallel, cut.micro_batches));
      TiedCopies tied(stage, layout_.tied);
      schedule.clear();
      pipeline.forward_backward(model, micro_batches(0, cut.micro_batches), weight());
      units->finish();
      tied.sum(*units);
      if (mesh.coordinate(Axis::kPp) != plan.stage) schedule.clear();
    });
    int64_t received = 0;  // by the rank that has most of the parameters
    for (const Schedule& schedule : schedules)
      received = std::max(received, received_along_pp(schedule, layout_.tied));
    EXPECT_EQ(received, planned);
  };
  for (const int64_t stages : {2, 3, 4}) {
    expect_planned({.name = "1f1b", .stages = stages, .micro_batches = 4});
    expect_planned({.name = "gpipe", .stages = stages, .schedule = PipelineSchedule::kGpipe});
  }
  expect_planned({.name = "chunks", .schedule = PipelineSchedule::kInterleaved, .chunks = 2});
  expect_planned({.name = "shards", .shard = 2});
  expect_planned({.name = "tensor parallel", .tp = 2});
  EXPECT_TRUE(num_tried_ > 0 || has_adapters || !can_be({.name = "two stages"}));
}

TEST_P(PipelineStages, GenerateWhatOneRankDoes) {
  const auto logits_of = [&](UnitStore& units, const PipelineStage& stage, std::vector<Tensor>& streams) {
    Decoder decoder(config_, units, 1, 3, at::kFloat, at::kCPU, {}, stage);
    decoder.next_logits(tokens_[0].narrow(0, 0, 1).contiguous());
    const Tensor next = decoder.next_logits(tokens_[1].narrow(0, 0, 1).contiguous(),
                                            {.every_position = true, .streams = &streams});
    return at::cat({next, logits_of_rows(config_, tokens_, units, {}, stage)});
  };
  std::vector<Tensor> wanted_streams;
  const Tensor wanted = logits_of(*whole_, {}, wanted_streams);
  for (const Cut& cut :
       {Cut{.name = "two"}, Cut{.name = "chunks", .schedule = PipelineSchedule::kInterleaved, .chunks = 2}}) {
    if (!can_be(cut)) continue;
    ThreadWorld(2).run([&](Communicator& world) {
      const Mesh mesh({{2, 1, 1, 1, 1}}, world);
      const PipelineStage stage(stage_part(train_, world.rank(), 1), world);
      const auto units =
          store_of(stage_units(layout_.units, stage.part(layout_.num_blocks), layout_.tied), mesh);
      std::vector<Tensor> streams;
      const Tensor given = logits_of(*units, stage, streams);
      EXPECT_LE((given - wanted).abs().max().item<double>(), 1e-5 * wanted.abs().max().item<double>());
      ASSERT_EQ(streams.size(), wanted_streams.size());
      for (size_t i = 0; i < streams.size(); ++i)
        EXPECT_LE((streams[i] - wanted_streams[i]).abs().max().item<double>(), 1e-5) << i;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PipelineStages, testing::ValuesIn(model_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

/// Models with as many blocks as there are parts, and dropout.
class PipelineOptions : public PipelineStages {};

MptConfig deep(PositionKind positions, bool tied) {
  MptConfig c;
  c.width = 48, c.layers = 7, c.heads = 6, c.vocab_size = 91, c.max_seq_len = 70, c.expansion_ratio = 2;
  c.positions = positions;
  c.tied = tied;
  c.attn_dropout = 0.2, c.resid_dropout = 0.3, c.embedding_dropout = 0.1;
  return c;
}

TEST_P(PipelineOptions, DropWhatOneRankDrops) {
  expect_as_one_rank({.name = "four stages", .stages = 4, .micro_batches = 6});
  expect_as_one_rank({.name = "by hand", .stages = 3, .layers = {1, 4, 2}, .micro_batches = 4});
  expect_as_one_rank({.name = "three chunks",
                      .schedule = PipelineSchedule::kInterleaved,
                      .chunks = 3,
                      .micro_batches = 4,
                      .recompute = {Recompute::kFull, 1}});
  expect_as_one_rank({.name = "all axes",
                      .schedule = PipelineSchedule::kInterleaved,
                      .chunks = 2,
                      .tp = 2,
                      .shard = 2,
                      .micro_batches = 2});
  EXPECT_EQ(num_tried_, 4);
}

INSTANTIATE_TEST_SUITE_P(Mpt, PipelineOptions,
                         testing::Values(ModelCase{"alibi", {deep(PositionKind::kAlibi, true)}, {3, 12}},
                                         ModelCase{"learned", {deep(PositionKind::kLearned, true)}, {2, 10}},
                                         ModelCase{"untied", {deep(PositionKind::kLearned, false)}, {2, 10}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
