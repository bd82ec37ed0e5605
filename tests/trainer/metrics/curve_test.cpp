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

TEST(CurveTest, AFileReadsOnlyWhatWasAddedAndBeginsAgainWhenItIsAnotherOne) {
  TempDir dir;
  const std::string path = dir / "metrics.jsonl";
  std::string text;
  CurveFile file(path, {"loss", "lr"});
  for (int step = 1; step <= 50; ++step) {
    text += Json({{"step", step}, {"attempt", 1}, {"loss", 1.0 / step}, {"lr", step}}).dump() + "\n";
    write_text(path, text);
    const std::vector<Curve> curves = file.read();
    EXPECT_EQ(curves[0].y, read_curve(path, "loss").y);
    EXPECT_EQ(curves[1].y, read_curve(path, "lr").y);
  }
  write_text(path, text + R"({"step":20,"attempt":2,"loss":7,"lr":8})" + "\n");
  EXPECT_EQ(file.read()[0].x.size(), 20u);
  write_text(path, R"({"step":1,"attempt":1,"loss":3,"lr":4})" + std::string("\n"));
  EXPECT_EQ(file.read()[0].y, std::vector<double>{3});
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
