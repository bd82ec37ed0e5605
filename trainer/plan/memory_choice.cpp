// Tries the divisors from the largest down: memory grows with the micro-batch, and so does speed, but for
// attention, whose blocks fill the GPU better with some numbers of sequences than with others.
#include "trainer/plan/memory_choice.h"

#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/field_types.h"
#include "trainer/families/check.h"
#include "trainer/plan/estimate.h"
#include "trainer/recipe/parallel.h"

namespace tycho {
namespace {

/// Sets what a plan of the choice says.
void plan_choice(const TrainConfig& config, const ModelLayout& layout, const PlanDevices& devices,
                 const Machine& machine, MemoryChoice& choice) {
  const Plan plan = plan_mesh(with_choice(config, choice), layout, devices);
  choice.device_bytes = device_bytes(plan, machine);
  choice.step_s = plan.estimate ? plan.estimate->step_s : 0;
  choice.order_s = plan.estimate ? plan.estimate->order_s : 0;
  choice.fits = choice.device_bytes <= choice.room_bytes;
}

/// Returns the fastest of a choice that fits and those of smaller micro-batches. Where the order of
/// attention's sums costs little, there is nothing to gain by them.
MemoryChoice with_filled_waves(const TrainConfig& config, const ModelLayout& layout,
                               const PlanDevices& devices, const Machine& machine,
                               const MemoryChoice& largest) {
  constexpr double kLittle = 0.02;
  MemoryChoice best = largest, choice = largest;
  while (best.order_s > kLittle * best.step_s && choice.sequences > 1) {
    choice.sequences = largest_divisor(choice.of_sequences, choice.sequences - 1);
    plan_choice(config, layout, devices, machine, choice);
    if (choice.step_s < best.step_s) best = choice;
  }
  return best;
}

}  // namespace

bool leaves_recompute(const TrainConfig& config) { return config.recompute.mode == Recompute::kAuto; }
bool leaves_micro_batch(const TrainConfig& config) {
  return config.micro_batch && config.micro_batch->is_auto;
}
bool leaves_memory(const TrainConfig& config) {
  return leaves_recompute(config) || leaves_micro_batch(config);
}

TrainConfig with_choice(TrainConfig config, const MemoryChoice& choice) {
  if (leaves_recompute(config)) config.recompute.mode = choice.recompute;
  if (leaves_micro_batch(config))
    config.micro_batch = Duration{static_cast<double>(choice.sequences), DurationUnit::kSample};
  return config;
}

MemoryChoice choose_memory(const TrainConfig& config, const PlanDevices& devices) {
  return choose_memory(config, model_layout(config.model), devices);
}

MemoryChoice choose_memory(const TrainConfig& config, const ModelLayout& layout, const PlanDevices& devices) {
  const Machine machine = planned_machine(config, devices);
  const int64_t ranks = data_ranks(config.parallel, devices.num_ranks);
  const std::vector<Recompute> modes =
      leaves_recompute(config)
          ? std::vector{Recompute::kNone, Recompute::kNorms, Recompute::kSelective, Recompute::kFull}
          : std::vector{config.recompute.mode};
  MemoryChoice best;
  for (const Recompute mode : modes) {
    MemoryChoice choice = {.recompute = mode,
                           .of_sequences = global_batch_sequences(config) / ranks,
                           .room_bytes = machine.memory_bytes};
    choice.sequences =
        leaves_micro_batch(config) ? choice.of_sequences : micro_batch_sequences(config, ranks);
    plan_choice(config, layout, devices, machine, choice);
    while (!choice.fits && leaves_micro_batch(config) && choice.sequences > 1) {
      choice.sequences = largest_divisor(choice.of_sequences, choice.sequences - 1);
      plan_choice(config, layout, devices, machine, choice);
    }
    const int64_t largest = choice.sequences;
    if (choice.fits && leaves_micro_batch(config))
      choice = with_filled_waves(config, layout, devices, machine, choice);
    const bool is_better = choice.fits ? !best.fits || choice.step_s < best.step_s : !best.fits;
    if (is_better) best = choice;
    // With the largest micro-batch of all, more recomputation only takes more time.
    if (choice.fits && (!leaves_micro_batch(config) || largest == choice.of_sequences)) break;
  }
  return best;
}

std::string choice_text(const TrainConfig& config, const MemoryChoice& choice) {
  const auto bytes = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  const std::string memory =
      fmt::format("with which it takes {} of {}", bytes(choice.device_bytes), bytes(choice.room_bytes));
  std::string text;
  if (leaves_recompute(config))
    text += fmt::format("recompute.mode = \"auto\": {}, {}{}\n", enum_name(choice.recompute), memory,
                        choice.fits ? "" : ": too much, and there is no other");
  if (leaves_micro_batch(config))
    text += fmt::format("micro_batch = \"auto\": {} of the {} sequences of a rank, {}{}\n", choice.sequences,
                        choice.of_sequences, memory,
                        choice.fits ? "" : ": too much, and one sequence is the least");
  return text;
}

}  // namespace tycho
