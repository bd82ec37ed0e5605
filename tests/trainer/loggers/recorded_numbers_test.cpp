// Numbers read back from metrics.jsonl equal those that its logger was told.
#include "trainer/loggers/recorded_numbers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/loggers/loggers_fixture.h"
#include "trainer/loggers/metric_names.h"

namespace tycho {
namespace {

const std::vector<SinkConfig> kJsonlAlone = {SinkConfig{{JsonlSinkConfig{}}}};

TEST(RecordedNumbers, AreThoseThatWereWritten) {
  TempDir dir;
  LogConfig log;
  log.sinks = kJsonlAlone;
  StepMetrics told = some_step(3);
  told.loss = NAN, told.mfu.reset();
  {
    const auto reporter = make_run_reporter(dir.path(), log, nullptr);
    reporter->run_start(some_run());
    reporter->step(told, true);
    reporter->metric(3, "eval.val.loss", 2.5);
  }
  for (const MetricNames names : {MetricNames::kTycho, MetricNames::kComposer, MetricNames::kTorchtitan}) {
    const std::vector<MetricRecord> read = recorded_numbers(dir.path(), 0, 9, some_run(), names);
    ASSERT_EQ(read.size(), 2u);
    const bool step_first = read[0].numbers.size() > 1;
    const NamedNumbers step = read[step_first ? 0 : 1].numbers,
                       wanted = named_numbers(told, some_run(), names);
    ASSERT_EQ(step.size(), wanted.size());
    for (size_t i = 0; i < step.size(); ++i) {
      EXPECT_EQ(step[i].first, wanted[i].first);
      const bool is_nan = std::isnan(wanted[i].second);
      EXPECT_TRUE(is_nan ? std::isnan(step[i].second) : step[i].second == wanted[i].second) << step[i].first;
    }
    EXPECT_EQ(read[step_first ? 1 : 0].numbers, named_numbers("eval.val.loss", 2.5, names));
  }
}

TEST(RecordedNumbers, ThatAreNotFiniteAreNullWithTheirTextBesideThem) {
  TempDir dir;
  LogConfig log;
  log.sinks = kJsonlAlone;
  StepMetrics told = some_step(3);
  told.loss = -NAN, told.grad_norm = INFINITY;
  {
    const auto reporter = make_run_reporter(dir.path(), log, nullptr);
    reporter->run_start(some_run());
    reporter->step(told, true);
    reporter->metric(4, "low", -INFINITY);
  }
  const std::vector<std::string> lines = lines_of(text_of(dir / "metrics.jsonl"));
  EXPECT_EQ(Json::parse(lines.at(0)).at("not_finite"), (Json{{"loss", "nan"}, {"grad_norm", "inf"}}));
  EXPECT_NE(lines.at(1).find(R"("low":null,"not_finite":{"low":"-inf"}})"), std::string::npos) << lines.at(1);
  const auto read = recorded_numbers(dir.path(), 0, 9, some_run(), MetricNames::kTycho);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].numbers.size(), named_numbers(told, some_run(), MetricNames::kTycho).size());
  EXPECT_EQ(read[1].numbers, (NamedNumbers{{"low", -INFINITY}}));
}

TEST(RecordedNumbers, AreOfTheStepsAskedForAndOfTheNewestAttempt) {
  TempDir dir;
  run_attempt(dir.path(), kJsonlAlone, {0, 4, ""});
  run_attempt(dir.path(), kJsonlAlone, {2, 5, ""});
  write_text(dir / "metrics.jsonl", text_of(dir / "metrics.jsonl") + "{\"step\":4,\"ti");
  std::vector<double> losses;
  for (const MetricRecord& record : recorded_numbers(dir.path(), 2, 4, some_run(), MetricNames::kTycho))
    for (const auto& [name, value] : record.numbers)
      if (name == "loss") losses.push_back(value);
  EXPECT_EQ(losses, (std::vector<double>{2.1, 3.2, 4.2}));
  std::string many;
  for (int step = 1; step <= 10'500; ++step)
    many += "{\"step\":" + std::to_string(step) + ",\"time\":1.0,\"x\":2.0}\n";
  write_text(dir / "metrics.jsonl", many);
  const std::vector<MetricRecord> last =
      recorded_numbers(dir.path(), 0, 20'000, some_run(), MetricNames::kTycho);
  ASSERT_EQ(last.size(), kMostRecorded);
  EXPECT_EQ(last.front().step, 501);
  EXPECT_TRUE(recorded_numbers(dir / "nowhere", 0, 9, some_run(), MetricNames::kTycho).empty());
}

}  // namespace
}  // namespace tycho
