// Tests of sinks on a thread of their own: slow, full, broken.
#include "trainer/loggers/background_sink.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

/// What a writer was told, and a gate at which it waits.
struct Seen {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> told;
  bool open = true, fails = false, waiting = false;

  void tell(const std::string& what) {
    std::unique_lock lock(mutex);
    waiting = true;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
    waiting = false;
    told.push_back(what);
    if (fails) fail(ExitCode::kStorage, "[disk] full");
  }
  void set_open(bool value) {
    const std::lock_guard lock(mutex);
    open = value;
    changed.notify_all();
  }
  void await_writer() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return waiting; });
  }
};

class SeenWriter final : public RecordWriter {
 public:
  explicit SeenWriter(Seen& seen) : seen_(seen) {}
  void start(const RunInfo& run) override { seen_.told.push_back("start " + run.run_name); }
  void resume(int64_t step) override { seen_.tell("resume " + std::to_string(step)); }
  void write(const std::vector<MetricRecord>& records) override {
    std::string steps;
    for (const MetricRecord& record : records) steps += " " + std::to_string(record.step);
    seen_.tell("write" + steps);
  }
  void end(const std::string& reason) override { seen_.tell("end " + reason); }

 private:
  Seen& seen_;
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::unique_ptr<MetricSink> make(Seen& seen, BackgroundLimits limits = {}) {
  auto sink =
      make_background_sink("t.log.test", MetricNames::kTycho, std::make_unique<SeenWriter>(seen), limits);
  sink->run_start(some_run());
  return sink;
}

TEST(BackgroundSink, WritesInOrderAndEndsWhenAllIsWritten) {
  Seen seen;
  seen.open = false;
  const auto sink = make(seen);
  sink->step(some_step(1));
  seen.await_writer();  // of step 1
  sink->step(some_step(2));
  sink->resume(1);
  sink->step(some_step(2));
  sink->metric(2, "x", 1);
  seen.set_open(true);
  sink->finish("done");
  EXPECT_EQ(seen.told, (std::vector<std::string>{"start mpt-125m", "write 1", "write 2", "resume 1",
                                                 "write 2 2", "end done"}));
}

TEST(BackgroundSink, NeverMakesTheRunWaitAndCountsWhatItDrops) {
  Seen seen;
  seen.open = false;
  const auto sink = make(seen, {.records = 3});
  sink->step(some_step(1));
  seen.await_writer();
  for (int64_t step = 2; step <= 4; ++step) sink->step(some_step(step));
  EXPECT_NE(message_of([&] { sink->step(some_step(5)); }).find("t.log.test cannot keep up"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { sink->step(some_step(6)); }), "");
  seen.set_open(true);
  EXPECT_NE(message_of([&] { sink->finish("done"); }).find("lacks 2 records"), std::string::npos);
  EXPECT_EQ(seen.told.at(2), "write 2 3 4");
}

TEST(BackgroundSink, SaysOnceThatItFailedAndIsSwitchedOff) {
  Seen seen;
  const auto sink = make(seen);
  seen.fails = true;
  sink->step(some_step(1));
  std::string message;
  while (message.empty()) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // or the queue would fill before the writer runs
    message = message_of([&] { sink->step(some_step(2)); });
  }
  EXPECT_NE(message.find("t.log.test is switched off until the next start: [disk] full"), std::string::npos);
  const size_t num_told = seen.told.size();
  EXPECT_EQ(message_of([&] { sink->step(some_step(3)); }), "");
  EXPECT_EQ(message_of([&] { sink->finish("done"); }), "");
  EXPECT_EQ(seen.told.size(), num_told);
}

TEST(BackgroundSink, ReportsFailuresOfTheEndAtTheEnd) {
  Seen seen;
  const auto sink = make(seen);
  seen.fails = true;
  EXPECT_NE(message_of([&] { sink->finish("done"); }).find("[disk] full"), std::string::npos);
}

TEST(BackgroundSink, DoesNotHoldUpTheEndOfARun) {
  Seen seen;
  seen.open = false;
  const auto sink = make(seen, {.flush_s = 0.01});
  sink->step(some_step(1));
  seen.await_writer();
  sink->step(some_step(2));
  EXPECT_NE(message_of([&] { sink->finish("done"); }).find("lacks 1 records"), std::string::npos);
  seen.set_open(true);  // or its thread would wait for ever
}

TEST(BackgroundSink, TellsTheWriterThatTheTimeIsUp) {
  // A writer that goes on until it is told.
  struct StubbornWriter final : RecordWriter {
    explicit StubbornWriter(Seen& seen) : seen(seen) { seen.open = false; }
    void start(const RunInfo&) override {}
    void resume(int64_t) override {}
    void write(const std::vector<MetricRecord>&) override { seen.tell("write"); }
    void cancel() override { seen.set_open(true); }
    Seen& seen;
  };
  Seen ended, destroyed;
  for (Seen* seen : {&ended, &destroyed}) {
    auto sink = make_background_sink("t.log.test", MetricNames::kTycho,
                                     std::make_unique<StubbornWriter>(*seen), {.flush_s = 0.01});
    sink->run_start(some_run());
    sink->step(some_step(1));
    seen->await_writer();
    if (seen == &ended) {
      EXPECT_NE(message_of([&] { sink->finish("done"); }).find("was still busy 0.01 s after the end"),
                std::string::npos);
    }
    sink.reset();
    EXPECT_EQ(seen->told, std::vector<std::string>{"write"});
  }
}

TEST(BackgroundSink, HistogramsAndTextsGoToWritersThatTakeThem) {
  struct PictureWriter final : RecordWriter {
    PictureWriter(Seen& seen, bool takes) : seen(seen), takes(takes) {}
    void start(const RunInfo&) override {}
    void resume(int64_t) override {}
    void write(const std::vector<MetricRecord>& records) override {
      for (const MetricRecord& record : records) {
        for (const NamedHistogram& one : record.histograms)
          seen.tell(one.name + std::to_string(one.counts.at(1)));
        for (const NamedText& one : record.texts) seen.tell(one.name + "=" + one.text);
      }
    }
    bool takes_more_than_numbers() const override { return takes; }
    Seen& seen;
    bool takes;
  };
  for (const bool takes : {true, false}) {
    Seen seen;
    const auto sink =
        make_background_sink("t.log.test", MetricNames::kTycho, std::make_unique<PictureWriter>(seen, takes));
    sink->run_start(some_run());
    sink->histogram(3, {"h\n", 0, 1, {4, 5}});
    sink->text(3, {"t\xff", "a\nb\x1b"});
    sink->finish("done");
    EXPECT_EQ(seen.told, takes ? (std::vector<std::string>{"h 5", "t?=a\nb?"}) : std::vector<std::string>{});
  }
}

TEST(BackgroundSink, WritesWhatWaitsWhenItIsDestroyed) {
  Seen seen;
  make(seen)->step(some_step(1));
  EXPECT_EQ(seen.told, (std::vector<std::string>{"start mpt-125m", "write 1", "end stopped"}));
}

TEST(BackgroundSink, NamesAreUtf8WithoutControlCharacters) {
  Seen seen;
  struct NameWriter final : RecordWriter {
    explicit NameWriter(Seen& seen) : seen(seen) {}
    void start(const RunInfo&) override {}
    void resume(int64_t) override {}
    void write(const std::vector<MetricRecord>& records) override { seen.tell(records[0].numbers[0].first); }
    Seen& seen;
  };
  const auto sink =
      make_background_sink("t.log.test", MetricNames::kTycho, std::make_unique<NameWriter>(seen));
  sink->run_start(some_run());
  sink->metric(1, "a\xff\x1b", 1);
  sink->finish("done");
  EXPECT_EQ(seen.told, std::vector<std::string>{"a??"});
}

}  // namespace
}  // namespace tycho
