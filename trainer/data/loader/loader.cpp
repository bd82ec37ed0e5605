// One thread reads samples into batches; a queue of `prefetch` batches connects it to the trainer.
#include "trainer/data/loader/loader.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/recipe/batch_width.h"

namespace tycho {
namespace {

size_t prefetch_of(const DataConfig& config) {
  return std::visit([](const auto& data) { return static_cast<size_t>(data.prefetch); }, config.value);
}

OrderShape order_shape(const LoaderShape& shape) {
  return {shape.global_sequences, shape.num_ranks, shape.num_nodes, shape.seed};
}

/// Makes batches one after the other. Owned by the loader's thread.
class BatchMaker {
 public:
  BatchMaker(const DataConfig& config, const LoaderShape& shape, const DataCursor& cursor,
             const OpenedData& opened, const OrderMarks& marks)
      : config_(config),
        shape_(shape),
        data_(open_rows(config,
                        {.seq_len = shape.seq_len,
                         .vocab_size = shape.vocab_size,
                         .tokenizer = shape.tokenizer,
                         .marks = shape.marks},
                        opened, order_shape(shape))),
        order_(data_order(config, data_->shard_sizes(), order_shape(shape))),
        epoch_samples_(order_.length()),
        marks_(marks),
        cursor_(cursor) {
    if (epoch_samples_ < shape.global_sequences) {
      fail(
          ExitCode::kUnusable,
          "[data] an epoch of {} has {} samples, one global batch needs {}; use a smaller batch or more data",
          config.place(), epoch_samples_, shape.global_sequences);
    }
    if (cursor.epoch < 0 || cursor.sample < 0 || cursor.sample > epoch_samples_) {
      fail(ExitCode::kUnusable,
           "[data] cannot resume at sample {} of epoch {}: {} has {} samples; is it a different data set?",
           cursor.sample, cursor.epoch, config.place(), epoch_samples_);
    }
    cursor_.sample = order_.start_at(cursor_.sample);
    skip_finished_epoch(cursor_);
    ahead_ = cursor_;
    if (const auto* mds = std::get_if<MdsConfig>(&config.value); mds != nullptr && data_->prefetches())
      num_ahead_ = mds->batches_ahead(shape.global_sequences);
  }

  /// Ends waits for remote data. From any thread.
  void cancel() { data_->cancel(); }

  /// Counts of shards opened and fetched. From any thread.
  FetchCounts fetch_counts() const { return data_->fetch_counts(); }

  const DataCursor& cursor() const { return cursor_; }
  int64_t samples_per_epoch() const {
    return epoch_samples_ / shape_.global_sequences * shape_.global_sequences;
  }

  /// Marks of an epoch's order. From any thread.
  OrderMarks order_marks(int64_t epoch) const { return order_.marks(epoch, marks_); }

  /// Returns the cursor `num_batches` batches after `from`.
  DataCursor after(const DataCursor& from, int64_t num_batches) const {
    const int64_t step = shape_.global_sequences;
    const int64_t left = (epoch_samples_ - from.sample) / step, per_epoch = epoch_samples_ / step;
    if (num_batches < left) return {from.epoch, from.sample + num_batches * step};
    const int64_t beyond = num_batches - left;
    return {from.epoch + 1 + beyond / per_epoch, beyond % per_epoch * step};
  }

  /// Returns this rank's share of the global batch at the cursor, and advances the cursor to the next batch.
  Batch make() {
    while (std::cmp_less_equal(batches_.size(), num_ahead_)) read_ahead();
    data_->start_epoch(batches_.front().epoch);
    const BatchAhead& next = batches_.front();
    Batch batch = data_->read_trimmed(next.samples, local_sequences(), next.width);
    batches_.pop_front();
    cursor_.sample += shape_.global_sequences;
    skip_finished_epoch(cursor_);
    return batch;
  }

 private:
  struct BatchAhead {
    int64_t epoch;
    int64_t width;  // equal on all ranks
    std::vector<uint32_t> samples;
  };

  int64_t local_sequences() const { return shape_.global_sequences / shape_.num_ranks; }

  void skip_finished_epoch(DataCursor& cursor) const {
    if (cursor.sample + shape_.global_sequences > epoch_samples_) cursor = {cursor.epoch + 1, 0};
  }

  /// Finds this rank's samples of the batch at ahead_, and starts to fetch their shards.
  void read_ahead() {
    if (epoch_ != ahead_.epoch) {
      samples_.reset();  // freed first, so that there is only one order in memory
      samples_ = bucketed_rows(order_.epoch(ahead_.epoch, marks_), config_, data_->trimmed_lengths(),
                               order_shape(shape_), ahead_.epoch);
      samples_->skip(ahead_.sample);
      epoch_ = ahead_.epoch;
    }
    global_batch_.resize(static_cast<size_t>(shape_.global_sequences));
    samples_->read(global_batch_);
    const auto first = global_batch_.begin() + shape_.rank * local_sequences();
    const int64_t width = batch_width(data_->trimmed_lengths(), global_batch_, shape_.seq_len);
    batches_.push_back({epoch_, width, {first, first + local_sequences()}});
    if (num_ahead_ > 0) data_->prefetch(batches_.back().samples);
    ahead_.sample += shape_.global_sequences;
    skip_finished_epoch(ahead_);
  }

  DataConfig config_;
  LoaderShape shape_;
  std::unique_ptr<RowReader> data_;
  SampleOrder order_;
  int64_t epoch_samples_;
  const OrderMarks marks_;
  DataCursor cursor_, ahead_;
  int64_t num_ahead_ = 0;              // batches whose samples are known before they are read
  std::deque<BatchAhead> batches_;     // samples of this rank, from cursor_ to ahead_
  std::unique_ptr<IdStream> samples_;  // samples of ahead_'s epoch, from ahead_ on
  std::vector<uint32_t> global_batch_;
  int64_t epoch_ = -1;
};

class PrefetchingLoader final : public DataLoader {
 public:
  PrefetchingLoader(const DataConfig& config, const LoaderShape& shape, const DataCursor& cursor,
                    const OpenedData& opened, const OrderMarks& marks)
      : maker_(config, shape, cursor, opened, marks),
        samples_per_epoch_(maker_.samples_per_epoch()),
        capacity_(prefetch_of(config)),
        cursor_(maker_.cursor()),
        thread_([this](std::stop_token stop) { fill(stop); }) {}

  ~PrefetchingLoader() override {
    thread_.request_stop();
    maker_.cancel();
  }

  Batch next() override {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queue_.empty() || error_; });
    if (queue_.empty()) std::rethrow_exception(error_);
    Ready ready = std::move(queue_.front());
    queue_.pop_front();
    changed_.notify_all();
    cursor_ = ready.after;
    ready.batch.wait_s = seconds_since(start);
    return std::move(ready.batch);
  }

  DataCursor cursor() const override { return cursor_; }
  DataCursor cursor_after(int64_t num_batches) const override { return maker_.after(cursor_, num_batches); }
  int64_t samples_per_epoch() const override { return samples_per_epoch_; }
  OrderMarks order_marks() override {
    if (marked_epoch_ != cursor_.epoch) marks_ = maker_.order_marks(cursor_.epoch);
    marked_epoch_ = cursor_.epoch;
    return marks_;
  }
  FetchCounts fetch_counts() const override { return maker_.fetch_counts(); }

 private:
  struct Ready {
    Batch batch;
    DataCursor after;
  };

  void fill(const std::stop_token& stop) {
    try {
      while (true) {
        Ready ready{maker_.make(), maker_.cursor()};
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return queue_.size() < capacity_; })) return;
        queue_.push_back(std::move(ready));
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  BatchMaker maker_;
  int64_t samples_per_epoch_;
  size_t capacity_;
  DataCursor cursor_;
  OrderMarks marks_;
  int64_t marked_epoch_ = -1;  // epoch of marks_
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Ready> queue_;
  std::exception_ptr error_;
  std::jthread thread_;  // declared last: it stops before the members that it uses are destroyed
};

}  // namespace

std::unique_ptr<DataLoader> make_loader(const DataConfig& config, const LoaderShape& shape,
                                        const DataCursor& cursor, const OpenedData& opened,
                                        const OrderMarks& marks) {
  TYCHO_CHECK(shape.seq_len > 0 && shape.global_sequences > 0 && shape.vocab_size > 0 &&
                  shape.num_ranks > 0 && shape.rank >= 0 && shape.rank < shape.num_ranks,
              "[data] the shape of the loader is not positive");
  if (shape.global_sequences % shape.num_ranks != 0) {
    fail(ExitCode::kTopology, "[data] a global batch of {} sequences cannot be divided evenly among {} ranks",
         shape.global_sequences, shape.num_ranks);
  }
  return std::make_unique<PrefetchingLoader>(config, shape, cursor, opened, marks);
}

}  // namespace tycho
