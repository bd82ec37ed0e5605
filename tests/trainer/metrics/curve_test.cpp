// Tests of reading a curve from metrics.jsonl, resumed runs and torn lines included.
#include "trainer/metrics/curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(CurveTest, TakesStepsThatWereDoneAgainFromTheLaterAttempt) {
  TempDir dir;
  write_text(dir / "metrics.jsonl",
             R"({"step":1,"attempt":1,"loss":9.0}
{"step":2,"attempt":1,"loss":8.0}
{"step":3,"attempt":1,"loss":7.0}
{"step":4,"attempt":1,"loss":6.0}
{"step":3,"attempt":2,"loss":7.5}
)");
  const Curve curve = read_curve(dir / "metrics.jsonl", "loss");
  EXPECT_EQ(curve.x, (std::vector<double>{1, 2, 3}));  // step 4 of attempt 1 is no part of this run any more
  EXPECT_EQ(curve.y, (std::vector<double>{9, 8, 7.5}));
}

TEST(CurveTest, SkipsWhatDoesNotParseOrIsNotANumber) {
  TempDir dir;
  write_text(dir / "metrics.jsonl",
             "{\"step\":1,\"loss\":9}\n{\"step\n\n[1]\n{\"step\":2,\"loss\":null}\n{\"step\":3,\"loss\":7}");
  const Curve curve = read_curve(dir / "metrics.jsonl", "loss");
  EXPECT_EQ(curve.x, (std::vector<double>{1, 3}));
}

TEST(CurveTest, KeepsWhatIsNotFinite) {
  TempDir dir;
  write_text(dir / "metrics.jsonl",
             "{\"step\":1,\"ppl\":9}\n{\"step\":2,\"ppl\":null,\"not_finite\":{\"ppl\":\"inf\"}}\n");
  const Curve curve = read_curve(dir / "metrics.jsonl", "ppl");
  EXPECT_EQ(curve.x, (std::vector<double>{1, 2}));
  EXPECT_EQ(curve.y, (std::vector<double>{9, INFINITY}));
}

void expect_unusable(const std::string& path, const std::string& name, const std::string& words) {
  try {
    read_curve(path, name);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(CurveTest, SaysWhatIsMissing) {
  TempDir dir;
  expect_unusable(dir / "absent.jsonl", "loss", "absent.jsonl");
  write_text(dir / "metrics.jsonl", "{\"step\":1,\"loss\":9}\n");
  expect_unusable(dir / "metrics.jsonl", "los", "records with \"los\"");
}

}  // namespace
}  // namespace tycho
