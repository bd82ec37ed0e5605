// One thread reads samples into batches; a queue of `prefetch` batches stands between it and the trainer.
#include "trainer/data/loader/loader.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <variant>

#include "trainer/base/error.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/loader/sampler.h"

namespace tycho {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The order of rows, for all kinds of data.
struct Order {
  bool shuffle;
  uint64_t seed;
  size_t prefetch;
};

Order order_of(const DataConfig& config, uint64_t seed) {
  return std::visit(
      [&](const auto& data) {
        return Order{data.shuffle, data.shuffle_seed ? static_cast<uint64_t>(*data.shuffle_seed) : seed,
                     static_cast<size_t>(data.prefetch)};
      },
      config.value);
}

std::optional<int64_t> epoch_size_of(const DataConfig& config) {
  return config.is<MdsConfig>() ? config.as<MdsConfig>().epoch_size : std::nullopt;
}

/// The order of an epoch of another length than the data's: cut short, or begun again.
std::vector<uint32_t> order_of_length(std::vector<uint32_t> order, int64_t length) {
  const size_t all = order.size();
  order.resize(static_cast<size_t>(length));
  for (size_t i = all; i < order.size(); ++i) order[i] = order[i - all];
  return order;
}

/// Makes the batches one after the other; the loader's thread owns it.
class BatchMaker {
 public:
  BatchMaker(const DataConfig& config, const LoaderShape& shape, const DataCursor& cursor)
      : shape_(shape),
        order_(order_of(config, shape.seed)),
        data_(open_rows(config, {shape.seq_len, shape.vocab_size, shape.tokenizer})),
        epoch_samples_(epoch_size_of(config).value_or(data_->num_samples())),
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
    skip_finished_epoch();
  }

  const DataCursor& cursor() const { return cursor_; }
  int64_t samples_per_epoch() const {
    return epoch_samples_ / shape_.global_sequences * shape_.global_sequences;
  }

  /// A cursor moved on by so many batches.
  DataCursor after(const DataCursor& from, int64_t num_batches) const {
    const int64_t step = shape_.global_sequences;
    const int64_t left = (epoch_samples_ - from.sample) / step, per_epoch = epoch_samples_ / step;
    if (num_batches < left) return {from.epoch, from.sample + num_batches * step};
    const int64_t beyond = num_batches - left;
    return {from.epoch + 1 + beyond / per_epoch, beyond % per_epoch * step};
  }

  /// This rank's share of the global batch at the cursor, which moves on to the next one.
  Batch make() {
    if (epoch_ != cursor_.epoch) {
      samples_ = order_of_length(
          epoch_order(data_->num_samples(), order_.shuffle, order_.seed, cursor_.epoch), epoch_samples_);
      epoch_ = cursor_.epoch;
    }
    const int64_t local = shape_.global_sequences / shape_.num_ranks;
    const auto samples = std::span<const uint32_t>(samples_).subspan(
        static_cast<size_t>(cursor_.sample + shape_.rank * local), static_cast<size_t>(local));
    Batch batch = data_->read_batch(samples, local);
    cursor_.sample += shape_.global_sequences;
    skip_finished_epoch();
    return batch;
  }

 private:
  void skip_finished_epoch() {
    if (cursor_.sample + shape_.global_sequences > epoch_samples_) cursor_ = {cursor_.epoch + 1, 0};
  }

  LoaderShape shape_;
  Order order_;
  std::unique_ptr<RowReader> data_;
  int64_t epoch_samples_;
  DataCursor cursor_;
  std::vector<uint32_t> samples_;  // of the epoch, in order
  int64_t epoch_ = -1;
};

class PrefetchingLoader final : public DataLoader {
 public:
  PrefetchingLoader(const DataConfig& config, const LoaderShape& shape, const DataCursor& cursor)
      : maker_(config, shape, cursor),
        samples_per_epoch_(maker_.samples_per_epoch()),
        capacity_(order_of(config, shape.seed).prefetch),
        cursor_(maker_.cursor()),
        thread_([this](std::stop_token stop) { fill(stop); }) {}

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
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Ready> queue_;
  std::exception_ptr error_;
  std::jthread thread_;  // last: stops before what it uses goes
};

}  // namespace

std::unique_ptr<DataLoader> make_loader(const DataConfig& config, const LoaderShape& shape,
                                        const DataCursor& cursor) {
  TYCHO_CHECK(shape.seq_len > 0 && shape.global_sequences > 0 && shape.vocab_size > 0 &&
                  shape.num_ranks > 0 && shape.rank >= 0 && shape.rank < shape.num_ranks,
              "[data] the shape of the loader is not positive");
  if (shape.global_sequences % shape.num_ranks != 0) {
    fail(ExitCode::kTopology, "[data] a global batch of {} sequences cannot be divided evenly among {} ranks",
         shape.global_sequences, shape.num_ranks);
  }
  return std::make_unique<PrefetchingLoader>(config, shape, cursor);
}

}  // namespace tycho
