// Tries the divisors from the largest down: memory grows with the micro-batch.
#include "trainer/plan/micro_batch_choice.h"

#include "trainer/base/bytes.h"
#include "trainer/families/check.h"
#include "trainer/plan/estimate.h"
#include "trainer/recipe/parallel.h"

namespace tycho {

TrainConfig with_micro_batch(TrainConfig config, int64_t sequences) {
  config.micro_batch = Duration{static_cast<double>(sequences), DurationUnit::kSample};
  return config;
}

MicroBatchChoice largest_micro_batch(const TrainConfig& config, const PlanDevices& devices) {
  return largest_micro_batch(config, model_layout(config.model), devices);
}

MicroBatchChoice largest_micro_batch(const TrainConfig& config, const ModelLayout& layout,
                                     const PlanDevices& devices) {
  const Machine machine = planned_machine(config, devices);
  MicroBatchChoice choice;
  choice.room_bytes = machine.memory_bytes;
  choice.of_sequences = global_batch_sequences(config) / data_ranks(config.parallel, devices.num_ranks);
  for (int64_t most = choice.of_sequences; most > 0 && !choice.fits; most = choice.sequences - 1) {
    choice.sequences = largest_divisor(choice.of_sequences, most);
    const Plan plan = plan_mesh(with_micro_batch(config, choice.sequences), layout, devices);
    choice.device_bytes = device_bytes(plan, machine);
    choice.fits = choice.device_bytes <= choice.room_bytes;
  }
  return choice;
}

std::string choice_text(const MicroBatchChoice& choice) {
  const auto bytes = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  const char* end = choice.fits ? "" : ": too much, and one sequence is the least";
  return fmt::format(
      "micro_batch = \"auto\": {} of the {} sequences of a rank, with which it takes {} of {}{}\n",
      choice.sequences, choice.of_sequences, bytes(choice.device_bytes), bytes(choice.room_bytes), end);
}

}  // namespace tycho
