// How tensors print: header, scale, corners, bars.
#include "bindings/run/tensor_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/bindings/run/fake_session.h"

namespace tycho {
namespace {

TEST(TensorText, ASmallTensorIsShownWhole) {
  const FakeTensor tensor({2, 2}, {0.5, -1.25, 2, 3});
  EXPECT_EQ(tensor_text(tensor, 4, 8, false),
            "f32[2x2] cpu  mean 1.062  std 1.604  min -1.25  max 3  finite\n"
            "    0.500   -1.250\n"
            "    2.000    3.000\n");
}

TEST(TensorText, SmallNumbersShareAScale) {
  const FakeTensor tensor({1, 3}, {0.012, -0.05, 0.001});
  const std::string text = tensor_text(tensor, 4, 8, true);
  EXPECT_NE(text.find("\n 0.01 ×\n    1.200   -5.000    0.100\n"), std::string::npos) << text;
}

TEST(TensorText, NumbersHaveFourSignificantDigits) {
  EXPECT_EQ(tensor_text(FakeTensor({1, 2}, {123.456, -7.8912}), 4, 8, false),
            "f32[1x2] cpu  mean 57.78  std 65.67  min -7.891  max 123.5  finite\n"
            "    123.5     -7.9\n");
  EXPECT_NE(tensor_text(FakeTensor({1, 2}, {0.12345, 0.5}), 4, 8, false).find("   0.1235   0.5000\n"),
            std::string::npos);
}

TEST(TensorText, ALargeTensorShowsItsCorners) {
  const auto tensor = FakeTensor::counting({10, 20});
  EXPECT_EQ(tensor_text(*tensor, 3, 3, false),
            "f32[10x20] cpu  mean 100.5  std 57.73  min 1  max 200  finite\n"
            "      1      2  ...     20\n"
            "     21     22  ...     40\n"
            "  ...\n"
            "    181    182  ...    200\n"
            "  (3 of 10 rows; (value):show(rows))\n");
}

TEST(TensorText, OneNumberNoneAndNaN) {
  EXPECT_EQ(tensor_text(FakeTensor({1}, {0.25}), 4, 8, false), "f32[1] cpu  0.25\n");
  EXPECT_EQ(tensor_header(FakeTensor({0, 4}, {}), false), "f32[0x4] cpu  empty");
  const std::string text = tensor_text(FakeTensor({2}, {NAN, 1}), 4, 8, false);
  EXPECT_NE(text.find("NOT FINITE"), std::string::npos) << text;
}

TEST(TensorText, BarsFollowTheCounts) {
  EXPECT_EQ(histogram_text({-1, 2, {1, 4, 0, 8}}, true), " -1 ▂▅ █ 2\n");
  EXPECT_EQ(histogram_text({0, 1, {0, 5}}, false), " 0 09 1\n");
}

}  // namespace
}  // namespace tycho
