// Ranks that share every matrix compute what one rank does: every option of every family, loss and gradients.
#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>

#include "tests/trainer/aten.h"
#include "tests/trainer/models/model_cases.h"
#include "tests/trainer/parallel/late_world.h"
#include "tests/trainer/parallel/recording.h"
#include "tests/trainer/parallel/thread_world.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/layout/tp_traffic.h"
#include "trainer/models/model.h"
#include "trainer/parallel/mesh.h"
#include "trainer/parallel/unit_store.h"
#include "trainer/units/init.h"

namespace tycho {
namespace {

struct Sharing {
  const char* name;
  int64_t tp = 2;
  bool sequence = true;
  int replicate = 1, shard = 1;
  bool keep_grads = false;
  int micro_batches = 1;  // of each rank that reads data of its own
  RecomputeConfig recompute = {};
  std::function<bool(const ParamSpec&)> frozen = {};
};

/// Whether ranks can share the heads of a model.
bool divides(const DecoderSpec& spec, int64_t tp) {
  return spec.heads % tp == 0 && (spec.kv_heads % tp == 0 || tp % spec.kv_heads == 0) &&
         spec.qk_norm != QkNorm::kTogether;
}

/// The elements of a whole tensor that lie on a rank, in the rank's order.
Tensor part_of(const ParamSpec& spec, const Tensor& whole) {
  Tensor part = at::empty(spec.shape, whole.options());
  for_whole_runs(spec, 0, part.numel(), [&](int64_t i, int64_t j, int64_t n) {
    part.view(-1).narrow(0, i, n).copy_(whole.reshape({-1}).narrow(0, j, n));
  });
  return part;
}

class TensorParallel : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    config_ = GetParam().config, shape_ = GetParam().shape;
    prepare();
  }
  void prepare() {
    layout_ = model_layout(config_);
    whole_ = std::make_unique<LocalUnits>(layout_.units, at::kFloat, at::kCPU, UnitUse::kTrain);
    for (GatheredUnit& unit : whole_->gathered())
      unit.flat_params().copy_(at::randn({unit.layout().numel()}).mul_(0.1));
    tokens_.clear();
    for (int i = 0; i < 10; ++i)
      tokens_.push_back(at::randint(layout_.vocab_size, {shape_.tokens()}, at::kInt));
  }

  MicroBatch micro_batch(int64_t i, bool first, bool last) const {
    Tensor targets = tokens_[static_cast<size_t>(i) + 1].clone();
    if (targets.numel() > 1) targets[0] = -100;  // ignored
    return {.tokens_N = tokens_[static_cast<size_t>(i)],
            .targets_N = targets,
            .first = first,
            .last = last,
            .dropout_key = static_cast<uint64_t>(i) + 99,
            .documents_N = documents_};
  }
  double step(Model& model, UnitStore& units, int64_t first, int64_t count) const {
    const Tensor weight_1 = at::full({1}, 1.0 / 64, at::kFloat);
    double loss = 0;
    for (int64_t i = 0; i < count; ++i)
      loss += model.forward_backward(micro_batch(first + i, i == 0, i + 1 == count), weight_1).item<double>();
    units.finish();
    return loss;
  }
  void expect_as_one_rank(const Sharing& sharing);
  /// A store of a rank's part of the model, filled, and the region around it.
  std::unique_ptr<UnitStore> store_of(const std::vector<UnitSpec>& specs, const TpShape& tp, const Mesh& mesh,
                                      const Sharing& sharing) const {
    auto units = make_unit_store(specs, at::kFloat, at::kCPU, UnitUse::kTrain,
                                 {sharing.shard, false, sharing.keep_grads, layout_.tied},
                                 {mesh.group(kShardAxes), mesh.group(Axis::kDpReplicate),
                                  tp.size > 1 ? &mesh.group(Axis::kTp) : nullptr});
    for (size_t u = 0; u < specs.size(); ++u) {
      std::vector<Tensor> flat;
      for (size_t i = 0; i < specs[u].params.size(); ++i)
        flat.push_back(
            part_of(specs[u].params[i], whole_->acquire(static_cast<int>(u), Pass::kForward)[i]).view(-1));
      const OwnedRange& range = units->owned()[u];
      Tensor(range.params).copy_(at::cat(flat).narrow(0, range.begin, range.size()));
    }
    return units;
  }

  ModelConfig config_;
  BatchShape shape_;
  ModelLayout layout_;
  std::unique_ptr<LocalUnits> whole_;
  std::vector<Tensor> tokens_;
  Tensor documents_;
};

void TensorParallel::expect_as_one_rank(const Sharing& sharing) {
  SCOPED_TRACE(sharing.name);
  if (!divides(decoder_spec(config_), sharing.tp)) return;
  if (sharing.sequence && shape_.tokens() % sharing.tp != 0) return;
  std::vector<UnitSpec> whole = layout_.units;
  for (UnitSpec& unit : whole)
    for (ParamSpec& param : unit.params) param.frozen = sharing.frozen && sharing.frozen(param);
  const MeshShape mesh_shape{{1, sharing.replicate, sharing.shard, 1, static_cast<int>(sharing.tp)}};
  const int data_ranks = sharing.replicate * sharing.shard;
  LocalUnits one(whole, at::kFloat, at::kCPU, UnitUse::kTrain);
  for (size_t u = 0; u < whole.size(); ++u)
    Tensor(one.gathered()[u].flat_params()).copy_(whole_->gathered()[u].flat_params());
  Model alone(config_, one, shape_, at::kFloat, at::kCPU, sharing.recompute);
  double wanted_loss = 0;
  for (int repeat = 0; repeat < 2; ++repeat)  // nothing of a step is left for the next one
    wanted_loss = step(alone, one, 0, int64_t{data_ranks} * sharing.micro_batches);
  const Tensor wanted_losses =
      alone.losses(tokens_[0], micro_batch(0, true, true).targets_N, documents_).clone();
  std::atomic<double> loss = 0;
  ThreadWorld(mesh_shape.num_ranks()).run([&](Communicator& world) {
    LateWorld late(world);
    const Mesh mesh(mesh_shape, late);
    const ParallelRegion region(mesh.group(Axis::kTp), sharing.sequence);
    const TpShape tp = region.shape();
    const std::vector<UnitSpec> specs = tp_units(whole, tp);
    const auto units = store_of(specs, tp, mesh, sharing);
    Model model(config_, *units, shape_, at::kFloat, at::kCPU, sharing.recompute, region);
    const int64_t data_rank = world.rank() / sharing.tp;
    for (int repeat = 0; repeat < 2; ++repeat) {
      const double own = step(model, *units, data_rank * sharing.micro_batches, sharing.micro_batches);
      if (repeat == 1 && tp.rank == 0) loss += own;
    }
    for (int u = 0; u < units->num_units(); ++u)
      for (size_t i = 0; i < specs[static_cast<size_t>(u)].params.size(); ++i) {
        const ParamSpec& spec = specs[static_cast<size_t>(u)].params[i];
        const Tensor given = units->grad(u, i), whole_grad = one.grads(u)[i];
        ASSERT_EQ(given.defined(), whole_grad.defined());
        if (!given.defined()) continue;
        const double scale = whole_grad.norm().item<double>();
        EXPECT_LE((given - part_of(spec, whole_grad)).norm().item<double>(), 2e-5 * scale + 1e-9)
            << spec.name << " on rank " << world.rank();
      }
    EXPECT_LE((model.losses(tokens_[0], micro_batch(0, true, true).targets_N, documents_) - wanted_losses)
                  .abs()
                  .max()
                  .item<double>(),
              2e-5);
  });
  EXPECT_NEAR(loss / wanted_loss, 1, 1e-6);
}

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
    if (call.verb == "all_gather" || call.verb == "reduce_scatter") bytes += size * (ranks - 1);
    if (call.verb == "all_reduce") bytes += 2 * size * (ranks - 1) / ranks;
  }
  return static_cast<int64_t>(bytes);
}

TEST_P(TensorParallel, MovesWhatThePlanCounts) {
  const DecoderSpec spec = decoder_spec(config_);
  for (const int64_t size : {2, 4})
    for (const bool sequence : {true, false})
      for (const Recompute mode : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        if (!divides(spec, size) || shape_.tokens() % size != 0) continue;
        const RecomputeConfig recompute = {mode, 1};
        std::vector<Schedule> schedules(static_cast<size_t>(size));
        ThreadWorld(static_cast<int>(size)).run([&](Communicator& world) {
          Schedule& schedule = schedules[static_cast<size_t>(world.rank())];
          RecordingCommunicator recording(world, schedule);
          const Mesh mesh({{1, 1, 1, 1, static_cast<int>(size)}}, recording);
          const ParallelRegion region(recording, sequence);
          const std::vector<UnitSpec> specs = tp_units(layout_.units, region.shape());
          const auto units = store_of(specs, region.shape(), mesh, {.name = "traffic"});
          Model model(config_, *units, shape_, at::kFloat, at::kCPU, recompute, region);
          schedule.clear();
          step(model, *units, 0, 1);
          const TpTraffic planned = tp_traffic(spec, specs, shape_, recompute, 4, region.shape());
          const int64_t all = planned.activations + planned.losses + tp_gradient_bytes(specs, region.shape());
          EXPECT_NEAR(static_cast<double>(received(schedule)), static_cast<double>(all), 2)
              << size << " ranks, sequence " << sequence << ", recompute " << static_cast<int>(mode);
        });
        EXPECT_EQ(first_fault(schedules), "");
      }
}

TEST_P(TensorParallel, GeneratesWhatOneRankDoes) {
  const auto logits_of = [&](UnitStore& units, const ParallelRegion& region) {
    Decoder decoder(config_, units, 1, 3, at::kFloat, at::kCPU, region);
    decoder.next_logits(tokens_[0].narrow(0, 0, 1).contiguous());
    return decoder.next_logits(tokens_[1].narrow(0, 0, 1).contiguous(), {.every_position = true});
  };
  const Tensor wanted = logits_of(*whole_, {});
  for (const int64_t tp : {2, 3}) {
    if (!divides(decoder_spec(config_), tp)) continue;
    ThreadWorld(static_cast<int>(tp)).run([&](Communicator& world) {
      const Mesh mesh({{1, 1, 1, 1, static_cast<int>(tp)}}, world);
      const ParallelRegion region(world, true);
      const auto units =
          store_of(tp_units(layout_.units, region.shape()), region.shape(), mesh, {.name = "text"});
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

MptConfig with_dropout(PositionKind positions) {
  MptConfig c;
  c.width = 48, c.layers = 2, c.heads = 6, c.vocab_size = 91, c.max_seq_len = 70, c.expansion_ratio = 2;
  c.positions = positions;
  c.attn_dropout = 0.2, c.resid_dropout = 0.3, c.embedding_dropout = 0.1;
  return c;
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

INSTANTIATE_TEST_SUITE_P(Mpt, TensorParallelOptions,
                         testing::Values(ModelCase{"alibi", {with_dropout(PositionKind::kAlibi)}, {3, 12}},
                                         ModelCase{
                                             "learned", {with_dropout(PositionKind::kLearned)}, {2, 9}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
