// The rules between the fields of a config, and its arithmetic.
#include "trainer/recipe/train_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/families/check.h"
#include "trainer/recipe/run_name.h"
#include "trainer/recipe/step_tokens.h"

namespace tycho {

TrainConfig::TrainConfig() = default;
TrainConfig::~TrainConfig() = default;
TrainConfig::TrainConfig(const TrainConfig&) = default;
TrainConfig::TrainConfig(TrainConfig&&) noexcept = default;
TrainConfig& TrainConfig::operator=(const TrainConfig&) = default;
TrainConfig& TrainConfig::operator=(TrainConfig&&) noexcept = default;

namespace {

constexpr int64_t kTokensPerPass = 16384;

}  // namespace

int64_t global_batch_sequences(const TrainConfig& config) {
  const int64_t count = config.global_batch.count();
  return config.global_batch.unit == DurationUnit::kToken ? count / config.seq_len : count;
}

int64_t micro_batch_sequences(const TrainConfig& config, int64_t num_ranks) {
  if (config.micro_batch && !config.micro_batch->is_auto) return config.micro_batch->count();
  return largest_divisor(global_batch_sequences(config) / num_ranks, kTokensPerPass / config.seq_len);
}

int64_t longest_sequence(const TrainConfig& config) {
  return std::visit(
      [&](const auto& family) { return std::optional<int64_t>(family.max_seq_len).value_or(config.seq_len); },
      config.model.value);
}

int64_t micro_batches_per_step(const TrainConfig& config, int64_t num_ranks) {
  const int64_t micro = micro_batch_sequences(config, num_ranks);
  return (global_batch_sequences(config) / num_ranks + micro - 1) / micro;
}

bool has_weights(const TrainConfig& config) {
  const auto weighs = [](const DataConfig& data) { return !data.weights().empty(); };
  const auto stage_weighs = [&](const DataStageConfig& stage) { return weighs(stage.data); };
  const auto set_weighs = [&](const auto& set) { return weighs(set.second); };
  return weighs(config.train_data) ||
         std::any_of(config.data_stages.begin(), config.data_stages.end(), stage_weighs) ||
         std::any_of(config.eval_data.begin(), config.eval_data.end(), set_weighs);
}

bool counts_without_padding(const TrainConfig& config) {
  const auto* chat = std::get_if<ChatConfig>(&config.train_data.value);
  return chat != nullptr && chat->compat == ChatCompat::kComposer;
}

int64_t total_steps(const TrainConfig& config, int64_t num_samples) {
  return whole_steps(in_steps(config.max_duration, config, 0, num_samples));
}

int64_t whole_steps(double steps) {
  // A whole number of steps may come out as 4800.0000000001.
  const double whole = std::round(steps);
  return static_cast<int64_t>(std::abs(steps - whole) <= steps * 1e-12 ? whole : std::ceil(steps));
}

double in_steps(const Duration& duration, const TrainConfig& config, int64_t total_steps,
                int64_t num_samples) {
  const int64_t sequences = global_batch_sequences(config);
  switch (duration.unit) {
    case DurationUnit::kBatch: return duration.value;
    case DurationUnit::kSample: return duration.value / static_cast<double>(sequences);
    case DurationUnit::kToken:
      return config.step_tokens ? config.step_tokens->steps(duration.value)
                                : duration.value / static_cast<double>(sequences * config.seq_len);
    case DurationUnit::kFraction: return duration.value * static_cast<double>(total_steps);
    // The loader leaves out the samples at the end of an epoch that do not fill a batch.
    case DurationUnit::kEpoch: return duration.value * static_cast<double>(num_samples / sequences);
    case DurationUnit::kSecond: break;
  }
  fail(ExitCode::kRecipe,
       "[config] {} is a time, which cannot be converted to steps; use ba, tok, sp, ep or dur",
       duration.str());
}

std::string run_folder_path(const TrainConfig& config) {
  return with_run_name(config.run_dir, config.run_name);
}

}  // namespace tycho
