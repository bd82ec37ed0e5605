// Tests of the names and units of other systems.
#include "trainer/loggers/metric_names.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/trainer/metrics/fixtures.h"

namespace tycho {
namespace {

RunInfo eight_ranks() {
  RunInfo run = some_run();
  run.num_ranks = 8;
  run.optimizer = "decoupled_adamw";
  return run;
}

std::map<std::string, double> numbers(MetricNames names, const StepMetrics& metrics = some_step()) {
  const NamedNumbers list = named_numbers(metrics, eight_ranks(), names);
  std::map<std::string, double> map(list.begin(), list.end());
  EXPECT_EQ(map.size(), list.size()) << "a name occurs twice";
  return map;
}

TEST(MetricNames, AreTychosOwnByDefault) {
  const auto own = numbers(MetricNames::kTycho);
  EXPECT_EQ(own.size(), std::tuple_size_v<decltype(StepMetrics::fields())> - 1);  // all but the step
  EXPECT_DOUBLE_EQ(own.at("loss"), 3.4125);
  EXPECT_DOUBLE_EQ(own.at("tokens"), 1240 * 524288.0);
  EXPECT_EQ(named_numbers("eval.val.loss", 2, MetricNames::kTycho), (NamedNumbers{{"eval.val.loss", 2}}));
}

TEST(MetricNames, OfComposer) {
  const auto theirs = numbers(MetricNames::kComposer);
  EXPECT_DOUBLE_EQ(theirs.at("loss/train/total"), 3.4125);
  EXPECT_DOUBLE_EQ(theirs.at("metrics/train/LanguageCrossEntropy"), 3.4125);
  EXPECT_DOUBLE_EQ(theirs.at("metrics/train/LanguagePerplexity"), std::exp(3.4125));
  EXPECT_DOUBLE_EQ(theirs.at("lr-DecoupledAdamW/group0"), 5.8e-4);
  EXPECT_DOUBLE_EQ(theirs.at("l2_norm/grad/global"), 0.71);
  EXPECT_DOUBLE_EQ(theirs.at("time/token"), 1240 * 524288.0);
  EXPECT_DOUBLE_EQ(theirs.at("throughput/device/tokens_per_sec"), 419430.4 / 8);
  EXPECT_DOUBLE_EQ(theirs.at("throughput/batches_per_sec"), 419430.4 / 524288);
  EXPECT_DOUBLE_EQ(theirs.at("throughput/device/flops_per_sec"), 406.8e12 / 8);
  EXPECT_DOUBLE_EQ(theirs.at("throughput/device/mfu"), 0.4112);
  EXPECT_DOUBLE_EQ(theirs.at("memory/peak_allocated_mem"), 61);
  EXPECT_DOUBLE_EQ(theirs.at("time/remaining_estimate"), 4450.0 / 3600);
  EXPECT_EQ(named_numbers("eval.c4.loss", 2, MetricNames::kComposer),
            (NamedNumbers{{"metrics/eval/c4/LanguageCrossEntropy", 2}}));
  EXPECT_EQ(named_numbers("eval.perplexity", 2, MetricNames::kComposer),
            (NamedNumbers{{"metrics/eval/LanguagePerplexity", 2}}));
  EXPECT_EQ(named_numbers("eval.c4.bits_per_byte", 2, MetricNames::kComposer),
            (NamedNumbers{{"eval.c4.bits_per_byte", 2}}))
      << "Composer has no such metric";
}

TEST(MetricNames, OfTorchTitan) {
  const auto theirs = numbers(MetricNames::kTorchtitan);
  EXPECT_DOUBLE_EQ(theirs.at("loss_metrics/global_avg_loss"), 3.4125);
  EXPECT_DOUBLE_EQ(theirs.at("throughput(tps)"), 419430.4 / 8);
  EXPECT_DOUBLE_EQ(theirs.at("tflops"), 406.8 / 8);
  EXPECT_DOUBLE_EQ(theirs.at("mfu(%)"), 41.12);
  EXPECT_DOUBLE_EQ(theirs.at("time_metrics/data_loading(%)"), 0.3);
  EXPECT_DOUBLE_EQ(theirs.at("n_tokens_seen"), 1240 * 524288.0);
  EXPECT_EQ(named_numbers("eval.loss", 2, MetricNames::kTorchtitan),
            (NamedNumbers{{"validation_metrics/loss", 2}}));
}

TEST(MetricNames, OfNanotron) {
  const auto theirs = numbers(MetricNames::kNanotron);
  EXPECT_DOUBLE_EQ(theirs.at("lm_loss"), 3.4125);
  EXPECT_DOUBLE_EQ(theirs.at("time_per_iteration_ms"), 1250);
  EXPECT_DOUBLE_EQ(theirs.at("tokens_per_sec_per_gpu"), 419430.4 / 8);
  EXPECT_DOUBLE_EQ(theirs.at("global_batch_size"), 524288);
  EXPECT_DOUBLE_EQ(theirs.at("model_tflops_per_gpu"), 406.8 / 8);
}

TEST(MetricNames, LeaveOutUnknownNumbersAndKeepALossThatIsNaN) {
  StepMetrics metrics = some_step();
  metrics.mfu.reset();
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(numbers(MetricNames::kTycho, metrics).contains("mfu"));
  EXPECT_FALSE(numbers(MetricNames::kComposer, metrics).contains("throughput/device/mfu"));
  EXPECT_FALSE(numbers(MetricNames::kTorchtitan, metrics).contains("mfu(%)"));
  EXPECT_TRUE(std::isnan(numbers(MetricNames::kComposer, metrics).at("loss/train/total")));
}

TEST(MetricNames, NumbersOfCallbacksKeepTheirs) {
  for (const MetricNames names :
       {MetricNames::kTycho, MetricNames::kComposer, MetricNames::kTorchtitan, MetricNames::kNanotron})
    EXPECT_EQ(named_numbers("eval.mine", 1, names), (NamedNumbers{{"eval.mine", 1}}));
}

}  // namespace
}  // namespace tycho
