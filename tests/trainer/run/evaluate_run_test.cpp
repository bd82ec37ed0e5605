// Evaluation during training: when it happens, what it reports, and that training does not notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/trainer/run/overflowing_model.h"
#include "tests/trainer/run/run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {
namespace {

class EvaluateRunTest : public RunTest {
 protected:
  EvaluateRunTest() {
    write_data(40, 16, 64);
    write_data(7, 16, 64, "val");
  }
  void add_set(const std::string& name) {
    MdsConfig data = config_.train_data.as<MdsConfig>();
    data.split = name;
    config_.eval_data[name].value = data;
  }
  void evaluate_every(const char* every, bool first) {
    add_set("val");
    if (*every != '\0') config_.eval.every = Duration::parse(every);
    config_.eval.first = first;
  }
  std::vector<Json> evaluations() const {
    std::vector<Json> found;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == "eval") found.push_back(event);
    return found;
  }
  Json newest_state() const { return find_checkpoint(run_dir()).manifest.at("train_state"); }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> found;
    for (const Json& event : evaluations()) found.push_back(event.at("step"));
    return found;
  }
  /// Trains a model from now on that overflows at token 63, which training never has and `val` has.
  void overflow_at_63() {
    MptConfig mpt;
    mpt.width = 32, mpt.layers = 2, mpt.heads = 4, mpt.vocab_size = 64, mpt.max_seq_len = 16,
    mpt.tied = false;
    config_.model.value = mpt;
    write_data(40, 16, 63);
    write_data(40, 16, 64, "val");
    ASSERT_EQ(run("1ba"), 0);
    export_overflowing(find_checkpoint(run_dir()), dir_ / "overflowing", 63);
    std::filesystem::remove_all(run_dir());
    std::get<MptConfig>(config_.model.value).weights = dir_ / "overflowing";
  }
};

TEST_F(EvaluateRunTest, ReportsAtIntervalsBeforeTheFirstStepAndAtTheEnd) {
  evaluate_every("5ba", /*first=*/true);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(steps(), (std::vector<int64_t>{0, 5, 10, 12}));
  for (const Json& event : evaluations()) {
    const Json& facts = event.at("facts");
    EXPECT_EQ(facts.at("tokens"), 7 * 15);
    EXPECT_DOUBLE_EQ(facts.at("perplexity"), std::exp(facts.at("loss").get<double>()));
    EXPECT_GT(facts.at("seconds"), 0);
    EXPECT_EQ(facts.at("name"), "val");
    EXPECT_EQ(facts.at("total"), true);
  }
  const Json first = evaluations().front(), last = evaluations().back();
  EXPECT_NEAR(first.at("facts").at("loss"), std::log(64.0), 0.15);
  EXPECT_LT(last.at("facts").at("loss"), first.at("facts").at("loss"));
  EXPECT_NE(first.at("text").get<std::string>().find("step 0 evaluated on val: loss 4."), std::string::npos)
      << first;
}

TEST_F(EvaluateRunTest, HappensAtTheEndAloneWhenNoIntervalIsGiven) {
  evaluate_every("", /*first=*/false);
  config_.eval.batches = 1;  // of 4 sequences
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(steps(), (std::vector<int64_t>{12}));
  EXPECT_EQ(evaluations()[0].at("facts").at("tokens"), 4 * 15);
}

TEST_F(EvaluateRunTest, TrainingIsTheSameBitForBitWithItAndAfterAResume) {
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  const auto whole_losses = losses();
  std::filesystem::remove_all(run_dir());

  evaluate_every("1ba", /*first=*/true);
  std::thread watcher([&] {
    while (!std::filesystem::exists(run_dir() + "/metrics.jsonl") || losses().empty()) usleep(200);
    stop_ = SIGTERM;
  });
  const int code = run();
  watcher.join();
  EXPECT_TRUE(code == 143 || code == 0) << code;
  stop_ = 0;
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);
  EXPECT_EQ(losses(), whole_losses);
  const std::vector<int64_t> evaluated = steps();
  EXPECT_EQ(std::count(evaluated.begin(), evaluated.end(), 0), 1);  // not again at the resume
}

// Two sets of different sizes, beside a run that evaluates each of them alone.
TEST_F(EvaluateRunTest, SetsHaveTheNumbersThatEachHasAloneAndTheTotalIsTheMeanOverAllTokens) {
  write_data(3, 16, 64, "code");
  std::map<std::string, std::vector<Json>> alone;
  for (const char* name : {"code", "val"}) {
    config_.eval_data.clear();
    config_.eval.every = Duration::parse("6ba");
    add_set(name);
    ASSERT_EQ(run(), 0);
    for (const Json& event : evaluations()) alone[name].push_back(event.at("facts"));
    std::filesystem::remove_all(run_dir());
  }
  add_set("code");
  ASSERT_EQ(run(), 0);
  const std::vector<Json> events = evaluations();
  ASSERT_EQ(events.size(), 6u);  // at steps 6 and 12
  for (size_t i = 0; i < 2; ++i) {
    const Json &code = events[3 * i].at("facts"), &val = events[3 * i + 1].at("facts"),
               &total = events[3 * i + 2].at("facts");
    EXPECT_EQ(code.at("name"), "code");
    EXPECT_EQ(val.at("name"), "val");
    EXPECT_EQ(code.at("loss"), alone["code"][i].at("loss"));
    EXPECT_EQ(val.at("loss"), alone["val"][i].at("loss"));
    EXPECT_EQ(code.at("total"), false);
    EXPECT_EQ(total.at("total"), true);
    EXPECT_FALSE(total.contains("name"));
    EXPECT_EQ(total.at("tokens"), (3 + 7) * 15);
    EXPECT_NEAR(total.at("loss"), (3 * code.at("loss").get<double>() + 7 * val.at("loss").get<double>()) / 10,
                1e-12);
    EXPECT_DOUBLE_EQ(total.at("perplexity"), std::exp(total.at("loss").get<double>()));
  }
  EXPECT_NE(events[0].at("text").get<std::string>().find("step 6 evaluated on code: loss"),
            std::string::npos);
  EXPECT_NE(events[2].at("text").get<std::string>().find("step 6 evaluated: loss"), std::string::npos);
}

TEST_F(EvaluateRunTest, AResumedRunRemembersTheNewestAndTheBestOfEverySet) {
  write_data(3, 16, 64, "code");
  evaluate_every("2ba", /*first=*/true);
  add_set("code");
  ASSERT_EQ(run(), 0);
  const Json whole = newest_state().at("eval");
  EXPECT_EQ(whole.at("sets").size(), 2u);
  EXPECT_EQ(whole.at("total").at("last").at("step"), 12);
  std::map<std::string, Json> lowest;
  for (const Json& event : evaluations()) {
    const Json& facts = event.at("facts");
    Json& best = lowest[facts.value("name", "")];
    if (best.is_null() || facts.at("loss") < best.at("loss")) best = facts;
  }
  EXPECT_EQ(whole.at("total").at("best").at("loss"), lowest[""].at("loss"));
  for (const char* name : {"code", "val"})
    EXPECT_EQ(whole.at("sets").at(name).at("best").at("loss"), lowest[name].at("loss"));
  std::filesystem::remove_all(run_dir());

  ASSERT_EQ(run("5ba"), 0);
  ASSERT_EQ(run("9ba"), 0);
  ASSERT_EQ(run(), 0);
  const Json resumed = newest_state().at("eval");
  EXPECT_EQ(resumed.at("total").at("last"), whole.at("total").at("last"));
  EXPECT_EQ(resumed.at("sets").at("code").at("last"), whole.at("sets").at("code").at("last"));
}

TEST_F(EvaluateRunTest, ThePlacesWhereARunPausesDoNotChangeWhatItRemembers) {
  write_data(3, 16, 64, "code");
  evaluate_every("2ba", /*first=*/true);
  add_set("code");
  ASSERT_EQ(run(), 0);
  const Json whole = newest_state().at("eval");
  std::filesystem::remove_all(run_dir());
  ASSERT_EQ(run("4ba"), 0);
  ASSERT_EQ(run("10ba"), 0);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_state().at("eval"), whole);
}

TEST_F(EvaluateRunTest, ALossThatIsNotFiniteIsNullWithAWarningAndTrainingGoesOnSavesAndResumes) {
  overflow_at_63();
  evaluate_every("4ba", /*first=*/true);
  write_data(7, 16, 63, "code");
  add_set("code");
  ASSERT_EQ(run("8ba"), 0);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(losses().size(), 12u);
  for (const auto& [step, loss] : losses()) EXPECT_TRUE(std::isfinite(loss)) << step;
  for (const Json& event : evaluations()) {
    const Json& facts = event.at("facts");
    if (facts.value("name", "") == "code") {
      EXPECT_TRUE(facts.at("loss").is_number());
      continue;
    }
    EXPECT_TRUE(facts.at("loss").is_null() && facts.at("perplexity").is_null()) << event;
    EXPECT_EQ(facts.at("not_finite"), (Json{{"loss", "nan"}, {"perplexity", "nan"}}));
    EXPECT_NE(event.at("text").get<std::string>().find(": loss nan, perplexity nan, "), std::string::npos);
  }
  int warnings = 0;
  for (const Json& event : lines("events.jsonl"))
    warnings += event.at("text").get<std::string>().find(": the loss of val is nan: ") != std::string::npos;
  EXPECT_EQ(warnings, 4);  // at steps 0, 4, 8, 12; once each
  int points = 0;
  for (const Json& line : lines("metrics.jsonl"))
    if (line.contains("eval.val.loss")) {
      EXPECT_TRUE(line.at("eval.val.loss").is_null());
      EXPECT_EQ(line.at("not_finite"), (Json{{"eval.val.loss", "nan"}}));
      ++points;
    }
  EXPECT_EQ(points, 4);
  const Json saved = newest_state().at("eval").at("sets");
  EXPECT_TRUE(saved.at("val").at("last").at("loss").is_null());
  EXPECT_TRUE(saved.at("code").at("best").at("loss").is_number());
}

TEST_F(EvaluateRunTest, NaNIsWorseThanEveryNumber) {
  overflow_at_63();
  evaluate_every("1ba", /*first=*/false);
  const auto best = [&] { return newest_state().at("eval").at("sets").at("val").at("best"); };
  ASSERT_EQ(run("2ba"), 0);
  EXPECT_TRUE(best().at("loss").is_null());
  EXPECT_EQ(best().at("step"), 1);  // the first of equals
  write_data(7, 16, 63, "val");
  ASSERT_EQ(run("4ba"), 0);
  EXPECT_TRUE(best().at("loss").is_number());
  const Json number = best();
  write_data(40, 16, 64, "val");
  ASSERT_EQ(run("6ba"), 0);
  EXPECT_EQ(best(), number);
}

TEST_F(EvaluateRunTest, OtherSetsHaveAnotherTotal) {
  write_data(3, 16, 64, "code");
  evaluate_every("2ba", /*first=*/true);
  ASSERT_EQ(run("4ba"), 0);
  const Json before = newest_state().at("eval");
  add_set("code");
  config_.eval.every.reset();
  config_.eval.first = false;
  ASSERT_EQ(run("6ba"), 0);
  const Json after = newest_state().at("eval");
  EXPECT_EQ(after.at("total").at("best").at("step"), 6);
  EXPECT_LE(after.at("sets").at("val").at("best").at("loss"),
            before.at("sets").at("val").at("best").at("loss"));
  config_.eval_data.erase("val");
  ASSERT_EQ(run("7ba"), 0);
  EXPECT_EQ(newest_state().at("eval").at("sets").size(), 1u);
}

TEST_F(EvaluateRunTest, MissingDataStopsTheRunBeforeItHasAFolder) {
  evaluate_every("5ba", /*first=*/false);
  std::get<MdsConfig>(config_.eval_data["val"].value).split = "nowhere";
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("data/nowhere"), std::string::npos) << error.what();
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
  // So does damage, named once.
  std::filesystem::create_directories(dir_ / "data/nowhere");
  std::ofstream(dir_ / "data/nowhere/index.json") << "{";
  EXPECT_EQ(std::string(run_error().what()).find("[[mds]"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

}  // namespace
}  // namespace tycho
