// Steps on threads against steps on one rank, and what of a whole parameter a rank has.
#include "tests/trainer/models/shared_model.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>

#include <atomic>

#include "tests/trainer/comm/late_world.h"
#include "tests/trainer/comm/thread_world.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

/// The elements of a whole tensor that lie on a rank, in the rank's order.
Tensor part_of(const ParamSpec& spec, const Tensor& whole) {
  Tensor part = at::empty(spec.shape, whole.options());
  for_whole_runs(spec, 0, part.numel(), [&](int64_t i, int64_t j, int64_t n) {
    part.view(-1).narrow(0, i, n).copy_(whole.reshape({-1}).narrow(0, j, n));
  });
  return part;
}

}  // namespace

bool divides(const DecoderSpec& spec, int64_t tp) {
  return tp == 1 || (spec.attention.heads % tp == 0 &&
                     (spec.attention.kv_heads % tp == 0 || tp % spec.attention.kv_heads == 0));
}

MptConfig with_dropout(PositionKind positions) {
  MptConfig c;
  c.width = 48, c.layers = 2, c.heads = 6, c.vocab_size = 91, c.max_seq_len = 70, c.expansion_ratio = 2;
  c.positions = positions;
  c.attn_dropout = 0.2, c.resid_dropout = 0.3, c.embedding_dropout = 0.1;
  return c;
}

Tensor logits_of_rows(const ModelConfig& config, const std::vector<Tensor>& tokens, UnitStore& units,
                      const ParallelRegion& region, const PipelineStage& stage) {
  Decoder decoder(config, units, 3, 4, at::kFloat, at::kCPU, region, stage);
  const auto first = [&](size_t i) { return tokens[i].narrow(0, 0, 1).contiguous(); };
  const Tensor begun = decoder.begin_row(2, at::cat({first(2), first(3)})),
               other = decoder.begin_row(0, first(4));
  const Tensor both = decoder.next_of_rows({2, 0}, at::cat({first(5), first(6)}));
  return at::cat({begun, other, both, decoder.next_of_rows({2}, first(7))});
}

void SharedModel::SetUp() {
  at::manual_seed(5);
  take(GetParam().config, GetParam().shape);
}

void SharedModel::take(const ModelConfig& config, BatchShape shape) {
  config_ = config, shape_ = shape;
  layout_ = model_layout(config_);
  whole_ = std::make_unique<LocalUnits>(layout_.units, at::kFloat, at::kCPU, UnitUse::kTrain);
  for (GatheredUnit& unit : whole_->gathered())
    unit.flat_params().copy_(at::randn({unit.layout().numel()}).mul_(0.1));
  tokens_.clear();
  for (int i = 0; i < 10; ++i)
    tokens_.push_back(at::randint(layout_.vocab_size, {shape_.tokens()}, at::kInt));
}

MicroBatch SharedModel::micro_batch(int64_t i, bool first, bool last, int64_t width) const {
  Tensor targets = tokens_[static_cast<size_t>(i) + 1].clone();
  if (targets.numel() > 1) targets[0] = -100;  // ignored
  const auto trimmed = [&](const Tensor& x_N) {
    return width == 0 ? x_N
                      : x_N.view({shape_.batch, shape_.seq}).narrow(1, 0, width).contiguous().view({-1});
  };
  return {.tokens_N = trimmed(tokens_[static_cast<size_t>(i)]),
          .targets_N = trimmed(targets),
          .first = first,
          .last = last,
          .dropout_key = static_cast<uint64_t>(i) + 99,
          .documents_N = documents_};
}

double SharedModel::step(Model& model, UnitStore& units, int64_t first, int64_t count, int64_t width) const {
  const Tensor weight_1 = at::full({1}, 1.0 / 64, at::kFloat);
  double loss = 0;
  for (int64_t i = 0; i < count; ++i)
    loss += model.at_width(width == 0 ? shape_.seq : width)
                .forward_backward(micro_batch(first + i, i == 0, i + 1 == count, width), weight_1)
                .item<double>();
  units.finish();
  return loss;
}

void SharedModel::expect_same_gradients(UnitStore& units, const std::vector<UnitSpec>& specs, LocalUnits& one,
                                        int rank) {
  for (int u = 0; u < units.num_units(); ++u)
    for (size_t i = 0; i < specs[static_cast<size_t>(u)].params.size(); ++i) {
      const ParamSpec& spec = specs[static_cast<size_t>(u)].params[i];
      const Tensor given = units.grad(u, i), whole_grad = one.grads(u)[i];
      ASSERT_EQ(given.defined(), whole_grad.defined());
      if (!given.defined()) continue;
      const double scale = whole_grad.norm().item<double>();
      EXPECT_LE((given - part_of(spec, whole_grad)).norm().item<double>(), 2e-5 * scale + 1e-9)
          << spec.name << " on rank " << rank;
    }
}

std::unique_ptr<UnitStore> SharedModel::store_of(const std::vector<UnitSpec>& specs, const Mesh& mesh,
                                                 bool keep_grads) const {
  auto units = make_unit_store(specs, at::kFloat, at::kCPU, UnitUse::kTrain,
                               {mesh.group(kShardAxes).size(), false, keep_grads, layout_.tied},
                               {[&mesh](const UnitSpec&) -> UnitGroup {
                                  return {mesh.group(kShardAxes), mesh.group(Axis::kDpReplicate)};
                                },
                                mesh.group(Axis::kTp).size() > 1 ? &mesh.group(Axis::kTp) : nullptr});
  for (size_t u = 0; u < specs.size(); ++u) {
    std::vector<Tensor> flat = {at::empty({0})};  // another stage may have the unit
    for (size_t i = 0; i < specs[u].params.size(); ++i)
      flat.push_back(
          part_of(specs[u].params[i], whole_->acquire(static_cast<int>(u), Pass::kForward)[i]).view(-1));
    const OwnedRange& range = units->owned()[u];
    Tensor(range.params).copy_(at::cat(flat).narrow(0, range.begin, range.size()));
  }
  return units;
}

void SharedModel::expect_as_one_rank(const Sharing& sharing) {
  SCOPED_TRACE(sharing.name);
  if (!divides(decoder_spec(config_), sharing.tp)) return;
  if (sharing.cp > 1 && shape_.seq % (2 * sharing.cp) != 0) return;
  if (sharing.sequence && shape_.tokens() / sharing.cp % sharing.tp != 0) return;
  std::vector<UnitSpec> whole = layout_.units;
  for (UnitSpec& unit : whole)
    for (ParamSpec& param : unit.params) param.frozen = sharing.frozen && sharing.frozen(param);
  const MeshShape mesh_shape{
      {1, sharing.replicate, sharing.shard, static_cast<int>(sharing.cp), static_cast<int>(sharing.tp)}};
  const int data_ranks = sharing.replicate * sharing.shard;
  LocalUnits one(whole, at::kFloat, at::kCPU, UnitUse::kTrain);
  for (size_t u = 0; u < whole.size(); ++u)
    Tensor(one.gathered()[u].flat_params()).copy_(whole_->gathered()[u].flat_params());
  Model alone(config_, one, shape_, at::kFloat, at::kCPU, sharing.recompute);
  double wanted_loss = 0;
  for (int repeat = 0; repeat < 2; ++repeat)  // nothing of a step is left for the next one
    wanted_loss =
        step(alone, one, 0, int64_t{data_ranks} * sharing.micro_batches, repeat == 1 ? sharing.width : 0);
  const Tensor wanted_losses =
      alone.losses(tokens_[0], micro_batch(0, true, true).targets_N, documents_).clone();
  std::atomic<double> loss = 0;
  ThreadWorld(mesh_shape.num_ranks()).run([&](Communicator& world) {
    LateWorld late(world);
    const Mesh mesh(mesh_shape, late);
    const ContextRegion context(mesh.context(), shape_.seq, sharing.ring);
    const ParallelRegion region(mesh.group(Axis::kTp), sharing.sequence, context);
    const TpShape tp = region.shape();
    const std::vector<UnitSpec> specs = tp_units(whole, tp);
    const auto units = store_of(specs, mesh, sharing.keep_grads);
    Model model(config_, *units, shape_, at::kFloat, at::kCPU, sharing.recompute, region);
    const int64_t data_rank = world.rank() / (sharing.tp * sharing.cp);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const double own = step(model, *units, data_rank * sharing.micro_batches, sharing.micro_batches,
                              repeat == 1 ? sharing.width : 0);
      if (repeat == 1 && tp.rank == 0) loss += own;
    }
    expect_same_gradients(*units, specs, one, world.rank());
    const Tensor losses = model.losses(tokens_[0], micro_batch(0, true, true).targets_N, documents_);
    EXPECT_LE((losses - context.own(wanted_losses)).abs().max().item<double>(), 2e-5);
  });
  EXPECT_NEAR(loss / wanted_loss, 1, 1e-6);
}

}  // namespace tycho
