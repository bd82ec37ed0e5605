// The state of training as JSON.
#include "trainer/state/train_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string message_of(const char* text) {
  try {
    TrainState::from_json(parse_json(text, "test"));
    return "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    return error.what();
  }
}

TEST(TrainState, ReadsBackWhatWasWritten) {
  const TrainState state = {
      .step = 12, .samples = 96, .tokens = int64_t{1} << 53, .data = {.epoch = 1, .sample = 40}};
  EXPECT_EQ(state.to_json().dump(),
            R"({"step":12,"samples":96,"tokens":9007199254740992,"data":{"epoch":1,"sample":40}})");
  TrainState skipping;
  skipping.skipped = 3, skipping.skipped_in_a_row = 1;
  EXPECT_EQ(TrainState::from_json(skipping.to_json()).skipped, 3);
  EXPECT_EQ(TrainState::from_json(skipping.to_json()).skipped_in_a_row, 1);
  const TrainState back = TrainState::from_json(parse_json(state.to_json().dump(), "test"));
  EXPECT_EQ(back.to_json(), state.to_json());
}

// A field that to_json or from_json forgets is lost at the next resume.
TEST(TrainState, KeepsEveryField) {
  TrainState state;
  state.step = 1, state.samples = 2, state.tokens = 3, state.data = {4, 5}, state.stage = 2;
  state.order_marks = {{"0123abcd", {7, 8, uint64_t{1} << 63}}};
  state.skipped = 6, state.skipped_in_a_row = 7;
  state.controls.lr = 0.25, state.controls.lr_by = "someone";
  state.controls.lr_windows = {{0.5, 8}, {0.75, std::nullopt}};
  state.controls.betas = {{0.8, 0.9}};
  state.controls.weight_decay = 0.1, state.controls.clip_norm = 2.0;
  state.controls.scheduler = {{"kind", "constant"}};
  state.controls.log_every = Duration::parse("10ba");
  state.controls.mix = {{"web", 0.75}, {"code", 0.25}};
  state.controls.enabled = {{"mine", false}};
  state.callbacks = {{"mine", {{"count", 9}}}};
  state.schedule = {{"state", {{"x", 10}}}, {"loss", 11.5}};
  state.eval.total = {{1.5, std::exp(1.5), 12, 13, 0.875}, {1.25, std::exp(1.25), 14, 15, NAN}};
  state.eval.sets["a"] = {{2.5, std::exp(2.5), 16, 17}, {2.25, std::exp(2.25), 18, 19}};
  state.eval_open = true;
  state.icl_open = true;
  const TrainState back = TrainState::from_json(parse_json(state.to_json().dump(), "test"));
  EXPECT_EQ(
      std::tie(back.step, back.samples, back.tokens, back.data, back.skipped, back.skipped_in_a_row),
      std::tie(state.step, state.samples, state.tokens, state.data, state.skipped, state.skipped_in_a_row));
  EXPECT_EQ(back.stage, state.stage);
  EXPECT_EQ(back.order_marks, state.order_marks);
  EXPECT_EQ(back.controls, state.controls);
  EXPECT_EQ(back.callbacks, state.callbacks);
  EXPECT_EQ(back.schedule, state.schedule);
  EXPECT_EQ(back.eval_open, state.eval_open);
  EXPECT_EQ(back.icl_open, state.icl_open);
  const auto numbers = [](const EvalRecord& record) {
    std::vector<double> all;
    for (const EvalScore& score : {record.last, record.best})
      for (const double x :
           {score.loss, score.perplexity, static_cast<double>(score.tokens), static_cast<double>(score.step)})
        all.push_back(x);
    return all;
  };
  ASSERT_TRUE(back.eval.total);
  EXPECT_EQ(numbers(*back.eval.total), numbers(*state.eval.total));
  EXPECT_EQ(back.eval.total->last.bits_per_byte, 0.875);
  EXPECT_TRUE(std::isnan(*back.eval.total->best.bits_per_byte));
  EXPECT_FALSE(back.eval.sets.at("a").last.bits_per_byte);
  ASSERT_EQ(back.eval.sets.size(), 1u);
  EXPECT_EQ(numbers(back.eval.sets.at("a")), numbers(state.eval.sets.at("a")));
  EXPECT_EQ(back.to_json(), state.to_json());
}

TEST(TrainState, RemembersTheNewestAndTheBestEvaluationOfEverySet) {
  const auto score = [](double loss, int64_t step) { return EvalScore{loss, std::exp(loss), 30, step}; };
  TrainState state;
  state.eval.total = {score(2.1, 8), score(2.0, 4)};
  state.eval.sets["c4"] = {score(1.9, 8), score(1.9, 8)};
  state.eval.sets["code"] = {score(0.1 + 0.2, 8), score(1e-17, 4)};
  const TrainState back = TrainState::from_json(parse_json(state.to_json().dump(), "test"));
  EXPECT_EQ(back.to_json(), state.to_json());
  EXPECT_EQ(back.eval.sets.at("code").last.loss, 0.1 + 0.2);
  EXPECT_EQ(back.eval.sets.at("code").best.perplexity, std::exp(1e-17));
  EXPECT_EQ(back.eval.total->best.step, 4);
  state.eval.total.reset();
  EXPECT_FALSE(TrainState::from_json(state.to_json()).eval.total);
}

TEST(TrainState, RemembersALossThatIsNaN) {
  TrainState state;
  state.eval.sets["c4"].last.loss = NAN;
  const TrainState back = TrainState::from_json(parse_json(state.to_json().dump(), "test"));
  EXPECT_TRUE(std::isnan(back.eval.sets.at("c4").last.loss));
  EXPECT_TRUE(std::isnan(back.eval.sets.at("c4").last.perplexity));
}

// What COMMIT keeps of it is canonical JSON, which refuses numbers that are not finite.
TEST(TrainState, CanBeSavedWhateverWasEvaluated) {
  TrainState state;
  state.eval.total = {{NAN, NAN, 3, 4}, {INFINITY, INFINITY, 3, 2}};
  state.eval.sets["c4"] = {{-INFINITY, 0, 3, 4}, {2.5, std::exp(2.5), 3, 2}};
  const TrainState back = TrainState::from_json(parse_json(canonical_json(state.to_json()), "test"));
  EXPECT_TRUE(std::isnan(back.eval.total->last.loss));
  EXPECT_EQ(back.eval.total->best.loss, INFINITY);
  EXPECT_EQ(back.eval.sets.at("c4").last.loss, -INFINITY);
  EXPECT_EQ(back.eval.sets.at("c4").best.loss, 2.5);
  Json before = state.to_json();  // an earlier Tycho wrote null alone
  before["eval"]["total"]["best"].erase("not_finite");
  EXPECT_TRUE(std::isnan(TrainState::from_json(before).eval.total->best.loss));
}

TEST(TrainState, NamesWhatIsMissingWrongOrUnknown) {
  EXPECT_EQ(message_of(R"({"step": 1, "samples": 2, "data": {"epoch": 0, "sample": 0}})"),
            "[train state] tokens is missing: the checkpoint is damaged or of another version");
  EXPECT_EQ(message_of(R"({"step": -1})"), "[train state] expected a whole number >= 0 for step, got -1");
  EXPECT_EQ(message_of(R"({"step": "1"})"), "[train state] expected a whole number >= 0 for step, got \"1\"");
  EXPECT_EQ(message_of(R"({"step": 18446744073709551615})"),
            "[train state] expected a whole number >= 0 for step, got 18446744073709551615");
  EXPECT_EQ(message_of(R"({"step": 1, "samples": 2, "tokens": 3, "data": 5})"),
            "[train state] epoch is missing: the checkpoint is damaged or of another version");
  const std::string whole = R"({"step": 1, "samples": 2, "tokens": 3, "data": {"epoch": 0, "sample": 0}, )";
  EXPECT_EQ(message_of((whole + R"("eval": {"sets": {"c4": {"last": 3}}}})").c_str()),
            "[train state] loss is missing: the checkpoint is damaged or of another version");
  EXPECT_EQ(message_of((whole + R"("eval": {"sets": 7}})").c_str()),
            "[train state] expected the sets of eval, got 7");
  for (const char* marks : {"7", "[]", R"({"a": 7})", R"({"a": [1, -1]})", R"({"a": [1.5]})",
                            R"({"a": [null]})", R"({"a": [1], "b": {}})"})
    EXPECT_EQ(
        message_of(
            fmt::format(
                R"({{"step": 1, "samples": 2, "tokens": 3, "data": {{"epoch": 0, "sample": 0, "order_marks": {}}}}})",
                marks)
                .c_str()),
        "[train state] expected lists of whole numbers >= 0 for order_marks: the checkpoint is damaged")
        << marks;
  EXPECT_EQ(message_of("[]"),
            "[train state] step is missing: the checkpoint is damaged or of another version");
  EXPECT_EQ(
      message_of(R"({"step": 1, "samples": 2, "tokens": 3, "data": {"epoch": 0, "sample": 0}, "rng": 1})"),
      "[train state] \"rng\" is unknown: a newer Tycho wrote this checkpoint; use that version to resume");
}

}  // namespace
}  // namespace tycho
