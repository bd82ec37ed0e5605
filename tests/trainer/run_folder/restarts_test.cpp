// Which starts count as dead, by what they wrote.
#include "trainer/run_folder/restarts.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

std::string start(int step) {
  return "{\"kind\":\"run_start\",\"facts\":{\"first_step\":" + std::to_string(step) + "}}\n";
}
std::string failure(int code) {
  return "{\"kind\":\"run_end\",\"text\":\"failed\",\"facts\":{\"exit_code\":" + std::to_string(code) +
         "}}\n";
}
const std::string kDone = "{\"kind\":\"run_end\",\"text\":\"done\"}\n";

int64_t count_of(const std::string& events, int64_t first_step = 4) {
  const TempDir dir;
  std::ofstream(dir / "events.jsonl") << events;
  return fruitless_starts(dir.path(), first_step);
}

TEST(FruitlessStarts, AreTheNewestOnesThatDied) {
  EXPECT_EQ(count_of(start(4)), 1);
  EXPECT_EQ(count_of(start(4) + start(4) + start(4)), 3);
  EXPECT_EQ(count_of(start(0) + start(4) + start(4)), 2) << "the first came from another step";
  EXPECT_EQ(count_of(start(4) + start(4), 8), 0) << "a newer checkpoint is there by now";
}

TEST(FruitlessStarts, CountErrorsThatSayStartMeAgain) {
  EXPECT_EQ(count_of(start(4) + failure(143) + start(4) + failure(138)), 2);
}

TEST(FruitlessStarts, EndWhereSomebodyHasLooked) {
  EXPECT_EQ(count_of(start(4) + start(4) + failure(14) + start(4)), 1) << "a permanent error";
  EXPECT_EQ(count_of(start(4) + start(4) + failure(130)), 0) << "Ctrl-C";
  EXPECT_EQ(count_of(start(4) + kDone + start(4)), 1) << "a signal, or the end";
}

TEST(FruitlessStarts, AreAlsoThoseOfWhichOneLineIsLeft) {
  const auto not_started = [](int code, int step) {
    return Json{{"kind", "not_started"}, {"facts", {{"first_step", step}, {"exit_code", code}}}}.dump() +
           "\n";
  };
  EXPECT_EQ(count_of(start(4) + not_started(143, 4)), 2);
  EXPECT_EQ(count_of(start(4) + not_started(12, 4)), 0) << "somebody asked for something else";
  EXPECT_EQ(count_of(start(4) + start(4) + start(4) + not_started(93, 4)), 3) << "what the count refused";
}

TEST(FruitlessStarts, IgnoreWhatTheyCannotRead) {
  EXPECT_EQ(count_of(""), 0);
  EXPECT_EQ(count_of("{\"kind\":\"run_end\"}\n" + start(4) + "{\"kind\":\"run_start\",\"fac"), 1);
  EXPECT_EQ(count_of("[\"run_start\"]\n{\"kind\":\"run_start\",\"facts\":7}\n" + start(4)), 1);
  EXPECT_EQ(fruitless_starts("/nowhere", 0), 0);
}

TEST(FruitlessStarts, AreRefusedAtTheLimit) {
  const TempDir dir;
  std::ofstream(dir / "events.jsonl") << start(4) << start(4);
  EXPECT_NO_THROW(require_progress(dir.path(), 4));
  std::ofstream(dir / "events.jsonl", std::ios::app) << start(4);
  EXPECT_NO_THROW(require_progress(dir.path(), 5));
  try {
    require_progress(dir.path(), 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kNoProgress);
    EXPECT_EQ(std::string(error.what())
                  .rfind("[run] " + std::string(dir.path()) + " was started 3 times from step 4", 0),
              0U)
        << error.what();
  }
}

}  // namespace
}  // namespace tycho
