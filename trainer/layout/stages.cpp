// Cuts blocks into parts of equal work, and removes from a layout what belongs to other stages.
#include "trainer/layout/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/layout/adapters.h"
#include "trainer/layout/decoder_slots.h"

namespace tycho {
namespace {

int64_t num_parts(const ParallelConfig& parallel) { return parallel.pp * parallel.pp_chunks; }

/// True if blocks `at` - 1 and `at` may be on different stages: no later block uses keys, values or inputs of
/// an earlier one.
bool can_cut(const DecoderSpec& spec, int64_t at) {
  for (int64_t i = at; i < spec.layers; ++i)
    if (spec.block(i).kv_block < at || spec.block(i).x_block < at) return false;
  return true;
}

/// FLOPs of a token's forward pass through each block, and through the head, which belongs to the last part.
struct Work {
  std::vector<double> blocks;
  double head = 0;
};
Work work_of(const TrainConfig& config) {
  const ModelLayout layout = model_layout(config.model);
  const auto products = [](const UnitSpec& unit) {
    double n = 0;
    for (const ParamSpec& param : unit.params)
      if (param.shape.size() == 2) n += static_cast<double>(numel(param.shape));
    return 2 * n;
  };
  Work work;
  const double attention =
      2 * static_cast<double>(layout.attention_width) * static_cast<double>(config.seq_len);
  for (int64_t i = 0; i < layout.num_blocks; ++i)
    work.blocks.push_back(products(layout.units[static_cast<size_t>(i) + 1]) + attention);
  for (const UnitSpec& unit : layout.units)
    if (unit.adapts >= 0) work.blocks[static_cast<size_t>(unit.adapts) - 1] += products(unit);
  work.head = 2 * static_cast<double>(layout.vocab_size) * static_cast<double>(layout.width);
  return work;
}

/// Quality of a cut: the work of its slowest part, then how unequal all are.
struct Balance {
  double slowest = std::numeric_limits<double>::infinity(), squares = 0;
  bool operator<(const Balance& other) const {
    return slowest != other.slowest ? slowest < other.slowest : squares < other.squares;
  }
};

/// Returns the best cut; nothing when there are too few positions to cut at.
std::optional<std::vector<int64_t>> best_cut(const DecoderSpec& spec, const Work& work, int64_t parts) {
  const auto layers = static_cast<size_t>(spec.layers), count = static_cast<size_t>(parts);
  std::vector<double> before(layers + 1);
  for (size_t i = 0; i < layers; ++i) before[i + 1] = before[i] + work.blocks[i];
  std::vector<std::vector<Balance>> best(count + 1, std::vector<Balance>(layers + 1));
  std::vector<std::vector<size_t>> from(count + 1, std::vector<size_t>(layers + 1));
  best[0][0] = {0, 0};
  for (size_t p = 1; p <= count; ++p)
    for (size_t end = p; end <= layers; ++end) {
      if (p == count ? end != layers : !can_cut(spec, static_cast<int64_t>(end))) continue;
      for (size_t begin = p - 1; begin < end; ++begin) {
        const double cost = before[end] - before[begin] + (p == count ? work.head : 0);
        const Balance& so_far = best[p - 1][begin];
        const Balance now = {std::max(so_far.slowest, cost), so_far.squares + cost * cost};
        if (now < best[p][end]) best[p][end] = now, from[p][end] = begin;
      }
    }
  if (best[count][layers].slowest == std::numeric_limits<double>::infinity()) return std::nullopt;
  std::vector<int64_t> sizes(count);
  for (size_t p = count, end = layers; p > 0; end = from[p--][end])
    sizes[p - 1] = static_cast<int64_t>(end - from[p][end]);
  return sizes;
}

void leave_out(SlotSpec& slot) { slot.shape = {0}; }

/// Allocator of numbers from 0, the lowest free one first.
class Numbers {
 public:
  int64_t take() {
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    const auto n = free - taken_.begin();
    if (free == taken_.end()) taken_.push_back(false);
    taken_[static_cast<size_t>(n)] = true;
    return n;
  }
  void give_back(int64_t n) { taken_[static_cast<size_t>(n)] = false; }
  int64_t most() const { return static_cast<int64_t>(taken_.size()); }

 private:
  std::vector<bool> taken_;
};

}  // namespace

bool StagePart::has_block(int64_t block) const {
  return std::any_of(chunks.begin(), chunks.end(), [&](const Chunk& chunk) { return chunk.has(block); });
}

int64_t StagePart::first_row(size_t chunk) const {
  int64_t row = 0;
  for (size_t c = 0; c < chunk; ++c) row += chunks[c].num_rows();
  return row;
}

StagePart whole_model(int64_t num_blocks) { return {.chunks = {{0, num_blocks}}}; }

std::vector<int64_t> blocks_of_parts(const TrainConfig& config) {
  if (!config.parallel.pp_layers.empty()) return config.parallel.pp_layers;
  const auto sizes = best_cut(decoder_spec(config.model), work_of(config), num_parts(config.parallel));
  TYCHO_CHECK(sizes, "[layout] this model cannot be cut into {} parts", num_parts(config.parallel));
  return *sizes;
}

double stage_imbalance(const TrainConfig& config) {
  const int64_t stages = config.parallel.pp;
  if (stages == 1) return 1;
  const Work work = work_of(config);
  const std::vector<int64_t> sizes = blocks_of_parts(config);
  std::vector<double> of_stage(static_cast<size_t>(stages));
  of_stage.back() = work.head;
  auto block = work.blocks.begin();
  for (size_t p = 0; p < sizes.size(); block += sizes[p++])
    of_stage[p % of_stage.size()] += std::accumulate(block, block + sizes[p], 0.0);
  const double all = std::accumulate(of_stage.begin(), of_stage.end(), 0.0);
  return *std::max_element(of_stage.begin(), of_stage.end()) * static_cast<double>(stages) / all;
}

std::vector<ConfigProblem> stage_problems(const TrainConfig& config) {
  if (config.parallel.pp == 1) return {};
  const DecoderSpec spec = decoder_spec(config.model);
  int64_t most = 1, at = 0;
  for (int64_t i = 1; i < spec.layers; ++i) most += can_cut(spec, i) ? 1 : 0;
  if (num_parts(config.parallel) > most)
    return {
        {"parallel.pp",
         fmt::format(
             "{} stages of {} chunks need as many parts, and this model can be cut into {}, for blocks that "
             "reuse keys, values or inputs stay together; lower parallel.pp or parallel.pp_chunks",
             config.parallel.pp, config.parallel.pp_chunks, most)}};
  const std::vector<int64_t>& sizes = config.parallel.pp_layers;
  for (size_t p = 0; p + 1 < sizes.size(); ++p)
    if (at += sizes[p]; !can_cut(spec, at))
      return {{"parallel.pp_layers", fmt::format("a stage ends before block {}, but that or a later one "
                                                 "reuses what an earlier block made; move "
                                                 "the end, or leave parallel.pp_layers empty",
                                                 at)}};
  return {};
}

std::vector<StagePart> stage_parts(const TrainConfig& config, int64_t num_micro_batches) {
  const int64_t stages = config.parallel.pp, chunks = config.parallel.pp_chunks;
  if (stages == 1) return {whole_model(decoder_spec(config.model).layers)};
  PipelineShape shape = pipeline_shape(config.parallel, num_micro_batches);
  // Between its warm-up and its end a stage repeats itself, so further micro-batches need no further memory.
  if (shape.schedule == PipelineSchedule::k1f1b)
    shape.num_micro_batches = std::min(shape.num_micro_batches, 2 * shape.num_stages);
  const std::vector<StageProgram> programs = pipeline_programs(shape, pipeline_table(shape));
  const std::vector<int64_t> sizes = blocks_of_parts(config);
  std::vector<StagePart> parts;
  for (int64_t stage = 0; stage < stages; ++stage) {
    const StageSlots slots = stage_slots(programs[static_cast<size_t>(stage)], chunks);
    StagePart part{.stage = stage, .num_stages = stages, .chunks = {}, .num_gradients = slots.num_gradients};
    int64_t begin = 0;
    for (size_t p = 0; p < sizes.size(); begin += sizes[p++])
      if (static_cast<int64_t>(p) % stages == stage)
        part.chunks.push_back({begin, begin + sizes[p], slots.num_sets[part.chunks.size()]});
    parts.push_back(std::move(part));
  }
  return parts;
}

StagePart stage_part(const TrainConfig& config, int64_t stage, int64_t num_micro_batches) {
  return stage_parts(config, num_micro_batches)[static_cast<size_t>(stage)];
}

int64_t stage_of_unit(const TrainConfig& config, int64_t unit) {
  const int64_t stages = config.parallel.pp;
  if (const int adapts = model_layout(config.model).units[static_cast<size_t>(unit)].adapts; adapts >= 0)
    unit = adapts;
  if (unit == 0 || stages == 1) return 0;
  const std::vector<int64_t> sizes = blocks_of_parts(config);
  int64_t begin = 0;
  for (size_t p = 0; p < sizes.size(); ++p)
    if (begin += sizes[p]; unit <= begin) return static_cast<int64_t>(p) % stages;
  return stages - 1;
}

StageSlots stage_slots(const StageProgram& program, int64_t num_chunks) {
  using Kind = PipelineOp::Kind;
  std::vector<Numbers> sets(static_cast<size_t>(num_chunks));
  Numbers gradients;
  std::optional<int64_t> on_its_way;                           // the gradient sent last
  std::map<std::pair<int, int>, int64_t> set_of, gradient_of;  // by chunk and micro-batch
  const auto number_of = [](auto& numbers, auto& all, const PipelineOp& op) {
    const auto [found, is_new] = all.try_emplace({op.chunk, op.micro_batch}, 0);
    if (is_new) found->second = numbers.take();
    return found->second;
  };
  std::vector<bool> sends_gradient(static_cast<size_t>(num_chunks));
  for (const PipelineOp& op : program)
    if (op.kind == Kind::kSendGradient) sends_gradient[static_cast<size_t>(op.chunk)] = true;
  StageSlots slots;
  for (const PipelineOp& op : program) {
    StageSlots::Place place;
    const bool is_back =
        op.kind == Kind::kReceiveGradient || op.kind == Kind::kBackward || op.kind == Kind::kSendGradient;
    Numbers& own = sets[static_cast<size_t>(op.chunk)];
    if (op.kind != Kind::kSendGradient) place.set = number_of(own, set_of, op);
    if (is_back) place.gradient = number_of(gradients, gradient_of, op);
    if (op.kind == Kind::kBackward) own.give_back(place.set);
    if (op.kind == Kind::kSendGradient) {
      if (on_its_way) gradients.give_back(*on_its_way);
      on_its_way = place.gradient;
    } else if (op.kind == Kind::kBackward && !sends_gradient[static_cast<size_t>(op.chunk)]) {
      gradients.give_back(place.gradient);
    }
    slots.of_ops.push_back(place);
  }
  for (const Numbers& chunk : sets) slots.num_sets.push_back(chunk.most());
  slots.num_gradients = gradients.most();
  return slots;
}

std::vector<UnitSpec> stage_units(std::vector<UnitSpec> units, const StagePart& part, bool tied) {
  if (part.num_stages == 1) return units;
  const size_t head = num_own_units(units) - 1;
  for (size_t u = 0; u < units.size(); ++u) {
    const size_t of = units[u].adapts < 0 ? u : static_cast<size_t>(units[u].adapts);
    const bool is_copy = u == 0 && tied && part.is_last();
    const bool is_own = u == 0      ? part.is_first()
                        : u == head ? part.is_last()
                                    : part.has_block(static_cast<int64_t>(of) - 1);
    if (!is_own && !is_copy) units[u].params.clear(), units[u].stacks.clear();
    if (is_own || !is_copy) continue;
    for (ParamSpec& param : units[u].params) {
      if (!param.part)
        param.part = {.whole = param.shape, .dim = 0, .runs = {{.size = param.shape.front(), .copies = 2}}};
      for (ParamPart::Run& run : param.part->runs) run.counts = false;
    }
  }
  return units;
}

ActivationSpecs stage_activations(ActivationSpecs specs, const StagePart& part) {
  if (part.num_stages == 1) return specs;
  specs.num_sets.assign(specs.saved.size(), 0);
  for (const StagePart::Chunk& chunk : part.chunks)
    for (int64_t i = chunk.begin; i < chunk.end; ++i) specs.num_sets[static_cast<size_t>(i)] = chunk.num_sets;
  for (size_t i = 0; i < specs.saved.size(); ++i)
    if (specs.num_sets[i] == 0) std::for_each(specs.saved[i].begin(), specs.saved[i].end(), leave_out);
  const auto slot = [&](int which) -> SlotSpec& { return specs.model[static_cast<size_t>(which)]; };
  slot(model_slot::kStream).shape.front() = part.first_row(part.chunks.size());
  slot(model_slot::kDStream).shape.front() = part.num_gradients;
  if (part.is_last()) return specs;
  for (SlotSpec& one : specs.model)
    if (one.of_head) leave_out(one);
  specs.head_chunk = 0;
  return specs;
}

}  // namespace tycho
