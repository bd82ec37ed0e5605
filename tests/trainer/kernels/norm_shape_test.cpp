// Compares norms that add rows or cast their result with a norm and passes apart, bit by bit.
#include "trainer/kernels/norm_shape.h"

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/kernels/layer_norm.h"
#include "trainer/kernels/rms_norm.h"

namespace tycho {
namespace {

constexpr float kEps = 1e-5f;

enum class Kind { kRms, kRmsWithOffset, kLayer, kLayerWithoutBias };

struct Normed {
  Tensor y, mean, inv;
};
void expect_same_bits(const Normed& a, const Normed& b) {
  EXPECT_TRUE(at::equal(a.y, b.y));
  EXPECT_TRUE(at::equal(a.mean, b.mean) && at::equal(a.inv, b.inv));
}

class NormAddsTest : public KernelTest {
 protected:
  /// Norms x into y.
  Normed norm(Kind kind, const Tensor& x, Tensor y, NormAdds adds, CastRows casts = {}) {
    const int64_t rows = x.size(0), dim = x.size(1);
    const NormShape shape = {rows, 1, dim, x.stride(0), y.stride(0)};
    const Tensor &weight = weight_.narrow(0, 0, dim), &bias = bias_.narrow(0, 0, dim);
    Normed made = {std::move(y), empty_fp32({rows}).zero_(), empty_fp32({rows})};
    float *mean = made.mean.mutable_data_ptr<float>(), *inv = made.inv.mutable_data_ptr<float>();
    if (kind == Kind::kRms || kind == Kind::kRmsWithOffset)
      table_->rms_norm(shape, dtype_, x.const_data_ptr(), weight.const_data_ptr(),
                       kind == Kind::kRms ? 0.0f : 1.0f, kEps, made.y.mutable_data_ptr(), inv, adds, casts,
                       stream_of(x));
    else
      table_->layer_norm(shape, dtype_, x.const_data_ptr(), weight.const_data_ptr(),
                         kind == Kind::kLayer ? bias.const_data_ptr() : nullptr, kEps,
                         made.y.mutable_data_ptr(), mean, inv, adds, casts, stream_of(x));
    return made;
  }
  Normed norm(Kind kind, const Tensor& x, NormAdds adds = {}, CastRows casts = {}) {
    return norm(kind, x, empty(x.sizes()), adds, casts);
  }
  void expect_sum_normed(Kind kind, const Tensor& x, const Tensor& before) {
    const Tensor sum = x + before;
    const Normed apart = norm(kind, sum);
    Tensor apart_sum = empty(x.sizes()), over_x = x.clone(), over_before = before.clone();
    expect_same_bits(norm(kind, x, {.before = before.const_data_ptr(), .sum = apart_sum.data_ptr()}), apart);
    EXPECT_TRUE(at::equal(apart_sum, sum));
    if (!x.is_contiguous()) return;
    expect_same_bits(norm(kind, over_x, {.before = before.const_data_ptr(), .sum = over_x.data_ptr()}),
                     apart);
    expect_same_bits(norm(kind, x, {.before = over_before.data_ptr(), .sum = over_before.data_ptr()}), apart);
    EXPECT_TRUE(at::equal(over_x, sum) && at::equal(over_before, sum));
  }
  void expect_norm_added(Kind kind, const Tensor& x, const Tensor& after) {
    Normed apart = norm(kind, x);
    apart.y = apart.y + after;
    expect_same_bits(norm(kind, x, {.after = after.const_data_ptr()}), apart);
    Tensor over_after = after.clone();
    expect_same_bits(norm(kind, x, over_after, {.after = over_after.data_ptr()}), apart);
  }
  /// `adds`: with or without a sum.
  void expect_cast(Kind kind, const Tensor& x, NormAdds adds, bool power_of_two) {
    const int64_t rows = x.size(0), dim = x.size(1);
    const Normed apart = norm(kind, x, adds);
    const auto codes = [&] { return at::empty({rows, dim}, at::TensorOptions(device_).dtype(at::kByte)); };
    Tensor wanted = codes(), made = codes(), factors = empty_fp32({rows}), made_factors = empty_fp32({rows}),
           amax = empty_fp32({rows}), made_amax = empty_fp32({rows});
    const void* y = apart.y.const_data_ptr();
    table_->fp8_row_amax({rows, dim}, dim, y, amax.mutable_data_ptr<float>(), stream_of(x));
    table_->fp8_rows({rows, dim}, dim, {Fp8Format::kE4m3, power_of_two}, y, nullptr,
                     wanted.mutable_data_ptr<uint8_t>(), factors.mutable_data_ptr<float>(), stream_of(x));
    expect_same_bits(norm(kind, x, adds,
                          {power_of_two, made.mutable_data_ptr<uint8_t>(),
                           made_factors.mutable_data_ptr<float>(), made_amax.mutable_data_ptr<float>()}),
                     apart);
    EXPECT_TRUE(at::equal(made, wanted) && at::equal(made_factors, factors) && at::equal(made_amax, amax));
    made_amax.zero_();
    expect_same_bits(norm(kind, x, adds, {.amax_R = made_amax.mutable_data_ptr<float>()}), apart);
    EXPECT_TRUE(at::equal(made_amax, amax));
  }

  Tensor weight_, bias_;
};

TEST_P(NormAddsTest, GiveTheBitsOfAnAdditionApart) {
  weight_ = normal({2048}), bias_ = normal({2048});
  for (const auto& [rows, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 33}, {70, 256}, {13, 1000}, {5, 2048}})
    for (const Kind kind : {Kind::kRms, Kind::kRmsWithOffset, Kind::kLayer, Kind::kLayerWithoutBias}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << dim << ", norm " << static_cast<int>(kind));
      const Tensor wide = normal({rows, dim + 8}), added = normal({rows, dim}, 3.0);
      for (const Tensor& x : {wide.narrow(1, 0, dim).contiguous(), wide.narrow(1, 8, dim)})
        expect_sum_normed(kind, x, added), expect_norm_added(kind, x, added);
    }
}

TEST_P(NormAddsTest, GiveTheCodesOfACastApart) {
  if (type_ != at::kBFloat16) return;
  weight_ = normal({2048}), bias_ = normal({2048});
  for (const auto& [rows, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 33}, {70, 256}, {13, 1000}, {5, 2048}})
    for (const Kind kind : {Kind::kRms, Kind::kRmsWithOffset, Kind::kLayer, Kind::kLayerWithoutBias}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << dim << ", norm " << static_cast<int>(kind));
      const Tensor wide = normal({rows, dim + 8}), added = normal({rows, dim}, 3.0);
      Tensor sum = empty({rows, dim});
      for (const Tensor& x : {wide.narrow(1, 0, dim).contiguous(), wide.narrow(1, 8, dim)})
        for (const bool power_of_two : {false, true}) {
          expect_cast(kind, x, {}, power_of_two);
          expect_cast(kind, x, {.before = added.const_data_ptr(), .sum = sum.data_ptr()}, power_of_two);
        }
    }
}

TYCHO_ON_EVERY_TABLE(NormAddsTest);

TEST(NormTerms, RefusesRowsThatDoNotFit) {
  const Tensor x = at::ones({4, 8}), weight = at::ones({8}), heads = at::ones({4}), none;
  Tensor y = at::empty({4, 8}), inv = at::empty({4}), inv_of_two = at::empty({8}), sum = at::empty({4, 8}),
         narrow = at::empty({4, 7}), no_sum;
  rms_norm(x, weight, 0, kEps, y, inv, {x, sum, none});
  EXPECT_TRUE(at::equal(sum, x + x));
  EXPECT_EQ(error_of([&] {
              rms_norm(x, weight, 0, kEps, y, inv, {x, narrow, none});
            }),
            "[rms_norm] sum: expected Float [4, 8] contiguous on cpu, got Float [4, 7] contiguous on cpu");
  EXPECT_EQ(
      error_of([&] {
        layer_norm(x, weight, {}, kEps, y, inv, inv, {none, no_sum, narrow});
      }),
      "[layer_norm] after: expected Float [4, 8] contiguous on cpu, got Float [4, 7] contiguous on cpu");
  for (const std::string& error : {error_of([&] {
                                     rms_norm(x, weight, 0, kEps, y, inv, {x, sum, x});
                                   }),
                                   error_of([&] {
                                     rms_norm(x, heads, 0, kEps, y, inv_of_two, {x, sum, none});
                                   })})
    EXPECT_EQ(error, "[rms_norm] expected one group and one place of an addition");
}

}  // namespace
}  // namespace tycho
