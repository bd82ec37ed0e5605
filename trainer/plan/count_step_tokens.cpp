// The order of rows is a function of the epoch, and lengths are known: no token is looked at.
#include "trainer/plan/count_step_tokens.h"

#include <optional>
#include <span>
#include <vector>

#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/loader/packed_chat_reader.h"

namespace tycho {
namespace {

constexpr int64_t kMostRows = 50'000'000;  // limit of the rows counted; longer runs use means

/// Adds up the rows of steps until a length is reached.
class StepCounter {
 public:
  StepCounter(const TrainConfig& config, int64_t num_rows) : sequences_(global_batch_sequences(config)) {
    if (config.max_duration.unit == DurationUnit::kToken)
      most_tokens_ = config.max_duration.value;
    else
      most_steps_ = total_steps(config, num_rows);
  }

  /// Adds the next row of the epoch. Returns false at the end of the run.
  bool add(int64_t row_tokens) {
    step_tokens_ += row_tokens;
    ++rows_;
    if (++step_rows_ < sequences_) return true;
    steps_.push_back(step_tokens_);
    sum_ += static_cast<double>(step_tokens_);
    end_epoch();
    return rows_ < kMostRows && (!most_tokens_ || sum_ < *most_tokens_) &&
           (!most_steps_ || std::ssize(steps_) < *most_steps_);
  }
  /// Ends an epoch and drops rows that fill no step.
  void end_epoch() { step_tokens_ = step_rows_ = 0; }
  const std::vector<int64_t>& steps() const { return steps_; }

 private:
  int64_t sequences_, step_rows_ = 0, step_tokens_ = 0, rows_ = 0;
  double sum_ = 0;
  std::optional<double> most_tokens_;
  std::optional<int64_t> most_steps_;
  std::vector<int64_t> steps_;
};

/// Counts rows epoch by epoch, with the same examples in each.
void count_rows(const ChatDataset& data, const OrderShape& shape, StepCounter& counter) {
  const std::vector<int32_t> lengths = data.row_lengths();
  const SampleOrder order = example_order(data.config(), data.shard_sizes(), shape);
  for (int64_t epoch = 0;; ++epoch) {
    const auto rows = bucketed_rows(order.epoch(epoch), DataConfig{data.config()}, lengths, shape, epoch);
    std::vector<uint32_t> batch(static_cast<size_t>(shape.global_sequences));
    for (int64_t b = 0; b < std::ssize(lengths) / shape.global_sequences; ++b) {
      rows->read(batch);
      for (const uint32_t row : batch)
        if (!counter.add(lengths[row])) return;
    }
    counter.end_epoch();
  }
}

/// Counts rows that are packed again in each epoch.
void count_packed_rows(const std::shared_ptr<const ChatDataset>& data, const OrderShape& shape,
                       StepCounter& counter) {
  PackedChatReader reader(data, shape);
  for (int64_t epoch = 0;; ++epoch) {
    reader.start_epoch(epoch);
    for (int64_t row = 0; row < reader.num_samples(); ++row) {
      int64_t tokens = 0;
      for (const uint32_t example : reader.row(static_cast<uint32_t>(row)))
        tokens += data->lengths()[example];
      if (!counter.add(tokens)) return;
    }
    counter.end_epoch();
  }
}

}  // namespace

std::shared_ptr<const StepTokens> count_step_tokens(const TrainConfig& config, const OpenedData& opened) {
  if (!counts_without_padding(config)) return nullptr;
  const auto data = open_chat_dataset(config.train_data.as<ChatConfig>(), row_shape(config), opened);
  const OrderShape shape = order_shape(config);
  const bool packs = data->config().packs_batches();
  const int64_t rows = packs ? batch_packing(*data, shape).rows_per_epoch() : data->num_rows();
  if (rows < shape.global_sequences) return nullptr;  // the loader says what is wrong
  StepCounter counter(config, rows);
  packs ? count_packed_rows(data, shape, counter) : count_rows(*data, shape, counter);
  return std::make_shared<const StepTokens>(counter.steps());
}

}  // namespace tycho
