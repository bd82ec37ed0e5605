// Saves that fail: what is said, when they are tried again, when the run ends. The times are RetryPolicy's.
#include "trainer/saving/save_retries.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/trainer/comm/thread_world.h"

namespace tycho {
namespace {

/// Keeps what was reported.
class KeptReports final : public Reporter {
 public:
  void event(const std::string& name, const std::string& text, const Json&) override {
    said.push_back(name + ": " + text);
  }
  void screen_warning(const std::string& text) override { said.push_back("screen: " + text); }
  std::vector<std::string> said;
};

const Error kFull("[files] no space is left", ExitCode::kStorage);

class SaveRetriesTest : public testing::Test {
 protected:
  std::string error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
      return error.what();
    }
    return "";
  }
  std::unique_ptr<Communicator> alone_ = make_world_of_one();
  KeptReports reporter_;
  SaveRetries retries_{600, *alone_, reporter_};
};

TEST_F(SaveRetriesTest, AFailureIsTriedAgainWithItsTag) {
  retries_.trained(1, 10);
  retries_.took_snapshot();
  retries_.failed(1, "best", kFull, /*last=*/false);
  ASSERT_EQ(reporter_.said.size(), 1U);
  EXPECT_EQ(reporter_.said[0],
            "error: [files] no space is left; the next try is in about 30 s, and the run ends when they fail "
            "for 10.0 min (ckpt.max_lost)");
  EXPECT_FALSE(retries_.step()) << "ranks are told first";
  Json news = Json::object();
  retries_.tell(1, news);
  retries_.read(news);
  EXPECT_EQ(retries_.step(), 4) << "three steps of 10 s later";
  Json later = Json::object();
  retries_.tell(1, later);
  EXPECT_TRUE(later.empty()) << "told once";
  EXPECT_EQ(retries_.start(), std::vector<std::string>{"best"});
  EXPECT_FALSE(retries_.step());
  EXPECT_TRUE(retries_.start().empty());
}

TEST_F(SaveRetriesTest, WhileSavesFailEachStepSaysHowLongAndTheRunEndsAtLast) {
  retries_.trained(1, 1);
  EXPECT_TRUE(reporter_.said.empty());
  retries_.took_snapshot();
  retries_.failed(1, "", kFull, /*last=*/false);
  retries_.trained(2, 100);
  EXPECT_EQ(reporter_.said.back(),
            "screen: no checkpoint could be written for 100 s; after 10.0 min the run ends: [files] no space "
            "is left");
  EXPECT_EQ(error_of([&] { retries_.trained(3, 501); }),
            "[checkpoint] no checkpoint could be written for ckpt.max_lost = 10.0 min; the last try failed: "
            "[files] no space is left. The same command resumes from the newest checkpoint once the folder "
            "can be written");
}

TEST_F(SaveRetriesTest, TheLastSaveMustSucceed) {
  retries_.require_saved();
  retries_.failed(7, "", kFull, /*last=*/true);
  EXPECT_EQ(reporter_.said, std::vector<std::string>{"error: [files] no space is left"});
  EXPECT_EQ(error_of([&] { retries_.require_saved(); }), "[files] no space is left");
  retries_.succeeded();
  retries_.require_saved();
}

TEST_F(SaveRetriesTest, NothingMayBeLostWhereTheKeyIsZero) {
  SaveRetries strict(0, *alone_, reporter_);
  strict.failed(1, "", kFull, /*last=*/false);
  EXPECT_EQ(reporter_.said.back(), "error: [files] no space is left; the run ends now (ckpt.max_lost = 0 s)");
  EXPECT_NE(error_of([&] { strict.trained(2, 1); }), "");
}

}  // namespace
}  // namespace tycho
