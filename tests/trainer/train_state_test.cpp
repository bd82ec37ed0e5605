// The state of training as JSON.
#include "trainer/train_state.h"

#include <gtest/gtest.h>

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

TEST(TrainState, NamesWhatIsMissingWrongOrUnknown) {
  EXPECT_EQ(message_of(R"({"step": 1, "samples": 2, "data": {"epoch": 0, "sample": 0}})"),
            "[train state] tokens is missing: the checkpoint is damaged or of another version");
  EXPECT_EQ(message_of(R"({"step": -1})"), "[train state] wanted a whole number >= 0 for step, given -1");
  EXPECT_EQ(message_of(R"({"step": "1"})"), "[train state] wanted a whole number >= 0 for step, given \"1\"");
  EXPECT_EQ(message_of(R"({"step": 18446744073709551615})"),
            "[train state] wanted a whole number >= 0 for step, given 18446744073709551615");
  EXPECT_EQ(message_of(R"({"step": 1, "samples": 2, "tokens": 3, "data": 5})"),
            "[train state] epoch is missing: the checkpoint is damaged or of another version");
  EXPECT_EQ(message_of("[]"),
            "[train state] step is missing: the checkpoint is damaged or of another version");
  EXPECT_EQ(
      message_of(R"({"step": 1, "samples": 2, "tokens": 3, "data": {"epoch": 0, "sample": 0}, "rng": 1})"),
      "[train state] \"rng\" is unknown: a newer Tycho wrote this checkpoint; resume it with that one");
}

}  // namespace
}  // namespace tycho
