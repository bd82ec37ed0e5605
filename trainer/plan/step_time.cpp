// FLOPs over a rate, bytes over a rate, and what of the second hides behind the first.
#include "trainer/plan/step_time.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/stages.h"
#include "trainer/plan/attention_time.h"
#include "trainer/plan/fp8_time.h"

namespace tycho {
namespace {

/// Share of a GPU's multiprocessors that NCCL takes from a concurrent product: 16 of 132 on an H100.
constexpr double kSlowedBy = 0.1;
/// Share of backward in forward and backward.
constexpr double kBackwardShare = 2.0 / 3;
constexpr double kTpCallsPerBlock = 8;
constexpr double kCpCallsPerBlock = 3;  // two gathers and a sum of gradients
/// FLOP that a GPU does in bf16 while it reads or writes one byte: 989 TFLOP/s and 3.35 TB/s on an H100.
constexpr double kFlopsPerByte = 300;

/// Returns the FLOPs per token that blocks compute a second time.
double recomputed_flops(const TrainConfig& config, const DecoderSpec& spec) {
  double sum = 0;
  for (int64_t i = 0; i < spec.layers; ++i) {
    const Recompute mode = config.recompute.of(i);
    if (mode == Recompute::kNone) continue;
    for (const LinearLayer& layer : linear_layers(spec, i))
      if (layer.recompute != Recompute::kNone && layer.recompute <= mode)
        sum += 2 * static_cast<double>(layer.columns * layer.rows);
    if (mode == Recompute::kFull) sum += 4 * static_cast<double>(spec.attention.width() * config.seq_len);
  }
  return sum;
}

/// Returns the bytes of a GPU's memory that move in a second.
double memory_rate(const Machine& machine) { return machine.peak_bf16 / kFlopsPerByte; }

/// Returns the bytes per token that recomputed norms before branches read and write, on all ranks along tp
/// together.
double recomputed_bytes(const TrainConfig& config, const DecoderSpec& spec) {
  int64_t norms = 0;
  for (int64_t i = 0; spec.norms_before() && i < spec.layers; ++i)
    if (config.recompute.of(i) != Recompute::kNone) norms += spec.reuses_x(i) ? 3 : 2;
  const int64_t width = config.precision == Precision::kBf16 ? 2 : 4;
  const int64_t repeats = config.parallel.sequence_parallel ? 1 : config.parallel.tp;
  return static_cast<double>(2 * norms * spec.width * width * repeats);
}

double share(double x, double half) { return x / (x + half); }

/// Returns the number of ranks of rank 0's group that are in its own domain. Sets `crosses` when some are
/// not.
int64_t group_in_domain(const MeshShape& mesh, AxisSet axes, int64_t per_domain, bool& crosses) {
  int64_t inside = 0;
  crosses = false;
  for (const int rank : ranks_of_group(mesh, axes, 0)) {
    if (rank < per_domain)
      ++inside;
    else
      crosses = true;
  }
  return inside;
}

struct Link {
  bool crosses = false;
  double rate = 0, least_s = 0;
};

Link link_of(const MeshShape& mesh, AxisSet axes, const Machine& machine) {
  Link link;
  const int64_t inside = group_in_domain(mesh, axes, ranks_per_domain(machine), link.crosses);
  const double over_network = machine.network_rate * static_cast<double>(inside);
  link.rate = !link.crosses ? machine.nvlink_rate
              : inside > 1  ? std::min(machine.nvlink_rate, over_network)
                            : over_network;
  link.least_s = link.crosses ? machine.network_s : machine.nvlink_s;
  return link;
}

/// Returns the number of collectives of a step along an axis.
double calls_of(const std::string& axis, const TrainConfig& config, int64_t num_units,
                int64_t micro_batches) {
  const auto units = static_cast<double>(num_units), passes = static_cast<double>(micro_batches);
  if (axis == "dp_replicate") return units;
  if (axis == "pp") return 2 * static_cast<double>(config.parallel.pp_chunks) * passes;
  if (axis == "dp_shard")
    return units * ((config.parallel.reshard_after_forward ? 2 * passes : 1) +
                    (config.parallel.keep_gradients ? 1 : passes));
  if (axis == "cp")  // not of the embedding and the head
    return (units - 2) / static_cast<double>(config.parallel.pp) * kCpCallsPerBlock * passes;
  return units * kTpCallsPerBlock * passes;
}

AxisSet axes_named(const std::string& name) {
  for (const Axis axis : {Axis::kPp, Axis::kDpReplicate, Axis::kCp, Axis::kTp})
    if (name == axis_name(axis)) return axis;
  return kShardAxes;
}

/// Returns the part of a transfer that the time of computing does not hide.
double exposed(const AxisTime& axis, double compute_s, int64_t num_units, int64_t micro_batches) {
  if (axis.axis == "dp_shard") {
    const double ends = axis.transfer_s / static_cast<double>(num_units * micro_batches);
    const double hidden = std::min(axis.transfer_s - ends, compute_s);
    return axis.transfer_s - hidden + kSlowedBy * hidden;
  }
  if (axis.axis == "dp_replicate") {
    const double last = compute_s * kBackwardShare / static_cast<double>(micro_batches);
    const double ends = axis.transfer_s / static_cast<double>(num_units);
    const double hidden = std::min(axis.transfer_s - ends, last);
    return axis.transfer_s - hidden + kSlowedBy * hidden;
  }
  return axis.transfer_s;
}

/// Returns what the order of attention's sums costs rank 0 in a step.
double order_s(const TrainConfig& config, const DecoderSpec& spec, const StepWork& work,
               double tokens_at_once, const Machine& machine) {
  if (machine.gpu.empty() || work.num_sms == 0) return 0;
  const auto at_once = tokens_at_once * static_cast<double>(work.mesh.size(Axis::kCp));
  const AttentionCalls calls = {
      .sequences = std::max<int64_t>(1, std::llround(at_once / static_cast<double>(config.seq_len))),
      .heads = std::max<int64_t>(1, spec.attention.heads / work.mesh.size(Axis::kTp)),
      .num_sms = work.num_sms,
      .peak = machine.peak_bf16};
  return attention_order_s(config, spec, calls) * static_cast<double>(work.micro_batches) /
         static_cast<double>(work.mesh.size(Axis::kPp));
}

/// Returns what fp8 adds to a step of rank 0.
double fp8_s(const TrainConfig& config, const DecoderSpec& spec, const StepWork& work, double tokens_at_once,
             double flops_per_s, const Machine& machine) {
  if (machine.gpu.empty()) return 0;
  const Fp8Calls calls = {.tokens = tokens_at_once,
                          .tp = work.mesh.size(Axis::kTp),
                          .cuts_tokens = config.parallel.sequence_parallel,
                          .has_codes = config.model.fp8.gather && work.mesh.size(kShardAxes) > 1,
                          .flops_per_s = flops_per_s,
                          .bytes_per_s = memory_rate(machine)};
  return fp8_added_s(config, spec, calls) * static_cast<double>(work.micro_batches) /
         static_cast<double>(work.mesh.size(Axis::kPp));
}

/// The time that a ring along cp adds to a step: hops of keys and values and of their gradients, and sums of
/// parts.
class RingTime {
 public:
  /// `tokens` is the number of a micro-batch on this rank, `flops_per_s` the rate that attention reaches.
  RingTime(const TrainConfig& config, const DecoderSpec& spec, const MeshShape& mesh, double tokens,
           double flops_per_s, const Machine& machine)
      : parts_(mesh.size(Axis::kCp)) {
    const double tp = mesh.size(Axis::kTp), bytes = config.precision == Precision::kBf16 ? 2 : 4;
    const double queries = static_cast<double>(spec.attention.width()) / tp;
    const double keys = 2 * std::max(1.0, static_cast<double>(spec.attention.kv_heads) / tp) *
                        static_cast<double>(spec.attention.head_dim);
    group_in_domain(mesh, Axis::kCp, ranks_per_domain(machine), crosses_);
    rate_ = crosses_ ? machine.network_rate : machine.nvlink_rate;
    least_s_ = crosses_ ? machine.network_s : machine.nvlink_s;
    rows_ = tokens * keys * bytes, gradients_ = tokens * keys * 4;
    part_s_ = 4 * queries * static_cast<double>(config.seq_len) * tokens / parts_ / flops_per_s;
    for (int64_t i = 0; i < spec.layers; ++i) {
      forwards_ += config.recompute.of(i) == Recompute::kFull ? 2 : 1;
      const int64_t window = spec.block(i).window;
      busy_ += window < 0 || 2 * window >= config.seq_len ? 1 : 0;  // others see few parts, and hide nothing
    }
    forwards_ /= static_cast<double>(spec.layers), busy_ /= static_cast<double>(spec.layers);
    // Forward: what a part gives is read and scaled, the sum scaled and added to. Backward: gradients of
    // queries are added, those of keys written, added and added to what arrives.
    const double forward = tokens * queries * (24 + bytes),
                 backward = tokens * queries * (8 + bytes) + tokens * keys * (24 + bytes);
    if (!machine.gpu.empty()) sums_s_ = parts_ * (forwards_ * forward + backward) / memory_rate(machine);
  }

  double rate() const { return rate_; }
  double calls_s() const { return (forwards_ * (parts_ - 1) + parts_ + 1) * least_s_; }
  /// Returns the hidden time of a block and a micro-batch.
  double hidden_s() const {
    const double forward = (parts_ - 1) * std::min(hop_s(rows_), part_s_), backward_s = 2 * part_s_;
    const double backward = std::min(hop_s(rows_), backward_s) + std::min(hop_s(gradients_), backward_s) +
                            (parts_ - 2) * std::min(hop_s(rows_ + gradients_), backward_s);
    return busy_ * (forwards_ * forward + backward);
  }
  double sums_s() const { return sums_s_; }

 private:
  double hop_s(double num_bytes) const { return num_bytes / rate_ + least_s_; }

  double parts_;
  bool crosses_ = false;
  double rate_ = 0, least_s_ = 0, rows_ = 0, gradients_ = 0, part_s_ = 0, sums_s_ = 0;
  double forwards_ = 0, busy_ = 0;  // of a block, on average
};

}  // namespace

double StepTime::waits_s() const {
  double sum = 0;
  for (const AxisTime& axis : axes) sum += axis.wait_s;
  return sum;
}

int64_t ranks_per_domain(const Machine& machine) { return std::max(machine.nvlink_gpus, int64_t{1}); }

StepTime step_time(const TrainConfig& config, const StepWork& work, const Machine& machine) {
  const double peak = machine.peak(config.precision);
  const DecoderSpec spec = decoder_spec(config.model, config.attention);
  const ModelLayout layout = model_layout(config.model);
  const MeshShape& mesh = work.mesh;
  const auto ranks = static_cast<double>(mesh.num_ranks());
  const auto sequences = static_cast<double>(global_batch_sequences(config));
  const double tokens = sequences * static_cast<double>(config.seq_len);
  const double model_flops = layout.flops_per_token_full(config.seq_len) * tokens;
  const double all_flops = model_flops + recomputed_flops(config, spec) * tokens;

  const auto cut = static_cast<double>(mesh.size(Axis::kTp));
  const double tokens_at_once = tokens / static_cast<double>(mesh.size(kDataAxes)) /
                                static_cast<double>(work.micro_batches) /
                                static_cast<double>(mesh.size(Axis::kCp));
  const double reached = machine.efficiency *
                         share(static_cast<double>(spec.width), machine.half_width * std::sqrt(cut)) *
                         share(tokens_at_once, machine.half_tokens * std::sqrt(cut));
  StepTime time;
  time.flash_3 = config.attention.flash == 3;
  time.order_s = order_s(config, spec, work, tokens_at_once, machine) * stage_imbalance(config);
  time.fp8_s = fp8_s(config, spec, work, tokens_at_once, peak * reached, machine) * stage_imbalance(config);
  time.compute_s = all_flops / ranks / (peak * reached) * stage_imbalance(config) + time.order_s + time.fp8_s;
  if (!machine.gpu.empty())
    time.compute_s +=
        recomputed_bytes(config, spec) * tokens / ranks / memory_rate(machine) * stage_imbalance(config);
  const int stages = mesh.size(Axis::kPp);
  time.bubble_s =
      time.compute_s * (stages - 1) / static_cast<double>(work.micro_batches * config.parallel.pp_chunks);

  std::map<std::string, int64_t> bytes;
  for (const ByteItem& item : work.traffic) bytes[item.name] += item.num_bytes;
  const auto num_units = static_cast<int64_t>(layout.units.size());
  for (const auto& [name, num_bytes] : bytes) {
    const Link link = link_of(mesh, axes_named(name), machine);
    AxisTime axis = {name, link.crosses, 0, 0};
    axis.transfer_s = static_cast<double>(num_bytes) / link.rate +
                      calls_of(name, config, num_units, work.micro_batches) * link.least_s;
    axis.wait_s = exposed(axis, time.compute_s, num_units, work.micro_batches);
    if (name == "cp" && config.parallel.cp_attention == CpAttention::kRing) {
      const RingTime ring(config, spec, mesh, tokens_at_once, peak * reached, machine);
      const double times = static_cast<double>(spec.layers * work.micro_batches) / stages;
      axis.transfer_s = static_cast<double>(num_bytes) / ring.rate() + times * ring.calls_s();
      const double hidden = times * ring.hidden_s();
      axis.wait_s = axis.transfer_s - (1 - kSlowedBy) * hidden + times * ring.sums_s();
    }
    time.axes.push_back(axis);
  }
  time.step_s = time.compute_s + time.bubble_s + time.waits_s();
  time.tokens_per_s = tokens / time.step_s;
  time.mfu = model_flops / time.step_s / (peak * ranks);
  return time;
}

}  // namespace tycho
