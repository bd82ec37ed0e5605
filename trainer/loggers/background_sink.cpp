// Hands records to a writer's thread through a bounded queue.
#include "trainer/loggers/background_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/loggers/metric_names.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

/// A record, or the step that the run resumes from.
struct Item {
  MetricRecord record;
  std::optional<int64_t> resume_step;
};

class BackgroundSink final : public MetricSink {
 public:
  BackgroundSink(std::string kind, MetricNames names, std::unique_ptr<RecordWriter> writer,
                 BackgroundLimits limits)
      : kind_(std::move(kind)), names_(names), limits_(limits), writer_(std::move(writer)) {}

  ~BackgroundSink() override {
    if (!thread_.joinable()) return;
    {
      std::unique_lock lock(mutex_);
      quits_ = true;
      news_.notify_all();
      idle_.wait_for(lock, seconds(limits_.flush_s), [&] { return ended_; });
    }
    writer_->cancel();
    thread_.join();
  }

  void run_start(const RunInfo& run) override {
    run_ = run;
    writer_->start(run);
    thread_ = std::thread([this] { work(); });
  }

  bool is_behind(const std::vector<StoredCheckpoint>& more) override { return writer_->is_behind(more); }

  void resume(int64_t step) override {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) queue_.push_back({{}, step});
    news_.notify_all();
  }

  void step(const StepMetrics& metrics) override {
    put({metrics.step, now_s(), named_numbers(metrics, run_, names_)});
  }

  void metric(int64_t step, const std::string& name, double value) override {
    // Formats of loggers are UTF-8, and a name is what a callback made of it.
    put({step, now_s(), named_numbers(printable(name, true), value, names_)});
  }

  void histogram(int64_t step, const NamedHistogram& histogram) override {
    if (!writer_->takes_more_than_numbers()) return;
    MetricRecord record = {.step = step, .time_s = now_s(), .histograms = {histogram}};
    record.histograms[0].name = printable(histogram.name, true);
    put(std::move(record));
  }

  void text(int64_t step, const NamedText& text) override {
    if (!writer_->takes_more_than_numbers()) return;
    std::string lines;
    std::istringstream all(text.text);
    for (std::string line; std::getline(all, line);)
      lines += (lines.empty() ? "" : "\n") + printable(line, true);
    put({.step = step, .time_s = now_s(), .texts = {{printable(text.name, true), lines}}});
  }

  void table(int64_t step, const NamedTable& table) override {
    if (writer_->takes_tables()) put({.step = step, .time_s = now_s(), .numbers = {}, .tables = {table}});
  }

  void alert(int64_t step, const NamedText& alert) override {
    if (writer_->takes_events())
      put({.step = step,
           .time_s = now_s(),
           .alerts = {{printable(alert.name, true), printable(alert.text, true)}}});
  }

  void checkpoint(const StoredCheckpoint& checkpoint) override {
    if (writer_->takes_events())
      put({.step = checkpoint.step, .time_s = now_s(), .checkpoints = {checkpoint}});
  }

  void finish(const std::string& reason) override {
    if (!thread_.joinable()) return;
    std::unique_lock lock(mutex_);
    end_reason_ = reason;
    news_.notify_all();
    const bool done = idle_.wait_for(lock, seconds(limits_.flush_s), [&] { return ended_; });
    if (!done) {
      num_dropped_ += queue_.size();
      writer_->cancel();
    }
    queue_.clear();
    quits_ = true;
    news_.notify_all();
    throw_news();
    tell_news();
    if (num_dropped_ > 0)
      fail(ExitCode::kStorage,
           "[log] {} lacks {} records: it could not keep up with the run; metrics.jsonl has them all", kind_,
           num_dropped_);
    if (!done)
      fail(ExitCode::kStorage, "[log] {} was still busy {:g} s after the end", kind_, limits_.flush_s);
  }

 private:
  void put(MetricRecord record) {
    const std::lock_guard lock(mutex_);
    throw_news();
    const bool empty = record.numbers.empty() && record.histograms.empty() && record.texts.empty() &&
                       record.tables.empty() && record.alerts.empty() && record.checkpoints.empty();
    if (!failure_.empty() || empty) return;
    if (queue_.size() >= limits_.records) {
      if (num_dropped_++ == 0)
        fail(ExitCode::kStorage,
             "[log] {} cannot keep up with the run: records are dropped there, and counted at the end; "
             "metrics.jsonl has them all",
             kind_);
      return;
    }
    queue_.push_back({std::move(record), {}});
    news_.notify_all();
    tell_news();
  }

  void tell_news() {
    if (const std::string news = writer_->news(); !news.empty())
      fail(ExitCode::kStorage, "[log] {}: {}", kind_, news);
  }

  // Says once why the logger is off. Called with the lock held.
  void throw_news() {
    if (failure_.empty() || std::exchange(told_, true)) return;
    fail(ExitCode::kStorage,
         "[log] {} is switched off until the next start: {}; the run continues, and metrics.jsonl has all "
         "numbers",
         kind_, failure_);
  }

  void work() {
    Clock::time_point due = Clock::now();
    std::unique_lock lock(mutex_);
    while (failure_.empty()) {
      if (!wait_for_records(lock)) continue;
      if (!quits_ && !end_reason_) news_.wait_until(lock, due, [&] { return quits_ || end_reason_; });
      if (quits_ && !end_reason_) end_reason_ = "stopped";
      const bool last = end_reason_.has_value();
      std::deque<Item> items = std::exchange(queue_, {});
      lock.unlock();
      const std::string failure = failure_of([&] {
        write(items);
        if (last) writer_->end(*end_reason_);
      });
      due = Clock::now() + seconds(writer_->pause_s());
      lock.lock();
      failure_ = failure;
      if (last && queue_.empty()) break;
    }
    queue_.clear();
    ended_ = true;
    idle_.notify_all();
  }

  /// Returns true when there is something to do. Called with the lock held.
  bool wait_for_records(std::unique_lock<std::mutex>& lock) {
    const auto is_ready = [&] { return quits_ || end_reason_ || !queue_.empty(); };
    const double tick_s = writer_->tick_s();
    if (tick_s <= 0) {
      news_.wait(lock, is_ready);
      return true;
    }
    if (news_.wait_for(lock, seconds(tick_s), is_ready)) return true;
    lock.unlock();
    const std::string failure = failure_of([&] { writer_->tick(); });
    lock.lock();
    failure_ = failure;
    return false;
  }

  void write(std::deque<Item>& items) {
    std::vector<MetricRecord> records;
    for (Item& item : items) {
      if (!item.resume_step) {
        records.push_back(std::move(item.record));
        continue;
      }
      if (!records.empty()) writer_->write(std::exchange(records, {}));
      writer_->resume(*item.resume_step);
    }
    if (!records.empty()) writer_->write(records);
  }

  template <class Body>
  static std::string failure_of(const Body& body) {
    try {
      body();
      return "";
    } catch (const std::exception& error) {
      return *error.what() != '\0' ? error.what() : "unknown error";
    }
  }

  const std::string kind_;
  const MetricNames names_;
  const BackgroundLimits limits_;
  RunInfo run_;
  std::unique_ptr<RecordWriter> writer_;  // used by thread_ once that runs

  std::mutex mutex_;
  std::condition_variable news_, idle_;
  std::deque<Item> queue_;
  size_t num_dropped_ = 0;
  std::string failure_;  // "" while the writer works
  bool told_ = false, ended_ = false, quits_ = false;
  std::optional<std::string> end_reason_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<MetricSink> make_background_sink(std::string kind, MetricNames names,
                                                 std::unique_ptr<RecordWriter> writer,
                                                 BackgroundLimits limits) {
  return std::make_unique<BackgroundSink>(std::move(kind), names, std::move(writer), limits);
}

}  // namespace tycho
