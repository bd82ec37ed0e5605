// Codes and scales of fp8 against c10's rounding, and products of codes against double.
#include "trainer/kernels/fp8.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>

#include <cmath>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/kernels/activation.h"

namespace tycho {
namespace {

at::ScalarType type_of(Fp8Format format) {
  return format == Fp8Format::kE4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
}
double most_of(Fp8Format format) { return format == Fp8Format::kE4m3 ? 448 : 57344; }
const std::vector<Fp8Rule> kRules = {
    {Fp8Format::kE4m3, false}, {Fp8Format::kE4m3, true}, {Fp8Format::kE5m2, false}, {Fp8Format::kE5m2, true}};

/// Scales of largest magnitudes, in double and rounded as torchao rounds them.
Tensor scales_of(const Tensor& amax, Fp8Rule rule) {
  const Tensor scale = (most_of(rule.format) / amax.to(at::kDouble).clamp_min(1e-12)).to(at::kFloat);
  return rule.power_of_two ? at::exp2(at::floor(at::log2(scale))) : scale;
}
Tensor codes_of(const Tensor& x, const Tensor& scale, Fp8Format format) {
  const double most = most_of(format);
  return (x.to(at::kFloat) * scale).clamp(-most, most).to(type_of(format)).view(at::kByte);
}
/// NaN has the same code whatever its sign.
Tensor without_sign_of_nan(const Tensor& codes, Fp8Format format) {
  const Tensor magnitude = codes.bitwise_and(0x7f);
  const Tensor is_nan = format == Fp8Format::kE4m3 ? magnitude == 0x7f : magnitude > 0x7c;
  return codes.masked_fill(is_nan, 0x7f);
}

struct Cast {
  Tensor codes, factors;
};

class Fp8Test : public KernelTest {
 protected:
  uint8_t* bytes(Tensor& codes) { return codes.mutable_data_ptr<uint8_t>(); }
  Cast room(int64_t rows, int64_t depth) {
    return {at::empty({rows, depth}, at::TensorOptions(device_).dtype(at::kByte)), empty_fp32({rows})};
  }
  Cast rows(const Tensor& x, Fp8Rule rule) {
    Cast made = room(x.size(0), x.size(1));
    table_->fp8_rows({x.size(0), x.size(1)}, x.stride(0), rule, x.const_data_ptr(), nullptr,
                     bytes(made.codes), made.factors.mutable_data_ptr<float>(), stream_of(x));
    return made;
  }
  Cast rows_with_amax(const Tensor& x, Fp8Rule rule, Tensor& amax) {
    const RowsShape shape = {x.size(0), x.size(1)};
    table_->fp8_row_amax(shape, x.stride(0), x.const_data_ptr(), amax.mutable_data_ptr<float>(),
                         stream_of(x));
    amax.mul_(2);
    Cast made = room(x.size(0), x.size(1));
    table_->fp8_rows(shape, x.stride(0), rule, x.const_data_ptr(), amax.const_data_ptr<float>(),
                     bytes(made.codes), made.factors.mutable_data_ptr<float>(), stream_of(x));
    return made;
  }
  Cast by_amax(const Tensor& x, Fp8Rule rule, bool transposed, bool whole) {
    const RowsShape shape = {x.size(0), x.size(1)};
    Tensor amax = empty_fp32({shape.dim}), workspace = empty_fp32({table_->fp8_amax_workspace(shape)});
    table_->fp8_amax(shape, x.stride(0), whole, x.const_data_ptr(), amax.mutable_data_ptr<float>(),
                     workspace.mutable_data_ptr<float>(), stream_of(x));
    return with_amax(x, rule, transposed, amax);
  }
  Cast with_amax(const Tensor& x, Fp8Rule rule, bool transposed, const Tensor& amax) {
    Cast made = transposed ? room(x.size(1), x.size(0)) : room(x.size(0), x.size(1));
    table_->fp8_cast({x.size(0), x.size(1)}, x.stride(0), rule, transposed, x.const_data_ptr(),
                     amax.const_data_ptr<float>(), bytes(made.codes), made.factors.mutable_data_ptr<float>(),
                     stream_of(x));
    return made;
  }
  void expect_cast(const Cast& made, const Tensor& x, const Tensor& scale, Fp8Format format) {
    EXPECT_TRUE(at::equal(made.codes.cpu(), codes_of(x, scale, format)));
    EXPECT_TRUE(at::equal(made.factors.cpu(), (1.0f / scale).expand({x.size(0), 1}).flatten()));
  }
  /// Every cast of x.
  void expect_casts(const Tensor& x, Fp8Rule rule) {
    const Tensor at_home = x.cpu().contiguous(), magnitude = at_home.abs(), turned = at_home.t().contiguous();
    const Tensor by_row = scales_of(magnitude.amax(1, true), rule),
                 by_column = scales_of(magnitude.amax(0), rule).unsqueeze(1),
                 of_all = scales_of(magnitude.max(), rule);
    expect_cast(rows(x, rule), at_home, by_row, rule.format);
    Tensor amax = empty_fp32({x.size(0)});
    const Cast other = rows_with_amax(x, rule, amax);  // twice that of each row
    EXPECT_TRUE(at::equal(amax.cpu(), 2 * magnitude.amax(1).to(at::kFloat)));
    expect_cast(other, at_home, scales_of(2 * magnitude.to(at::kFloat).amax(1, true), rule), rule.format);
    expect_cast(by_amax(x, rule, true, false), turned, by_column, rule.format);
    expect_cast(by_amax(x, rule, true, true), turned, of_all, rule.format);
    expect_cast(by_amax(x, rule, false, true), at_home, of_all, rule.format);
  }
};

TEST_P(Fp8Test, RoundsEveryBf16AsC10DoesAfterClamping) {
  std::vector<int16_t> bits(1 << 16);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<int16_t>(i);
  const Tensor x = at::tensor(bits, at::kShort).view(at::kBFloat16).view({256, 256});
  for (const Fp8Format format : {Fp8Format::kE4m3, Fp8Format::kE5m2})
    // Scales of 1, and of numbers between those of bf16.
    for (const double scale : {1.0, 1.0 / 3, 0.75}) {
      const Tensor amax = on_device(at::full({256}, static_cast<float>(most_of(format) / scale)));
      const Cast made = with_amax(on_device(x), {format, false}, false, amax);
      const Tensor used = scales_of(amax.cpu(), {format, false})[0];
      EXPECT_TRUE(at::equal(without_sign_of_nan(made.codes.cpu(), format),
                            without_sign_of_nan(codes_of(x, used, format), format)));
    }
}

TEST_P(Fp8Test, ScalesRowsColumnsAndWholes) {
  const std::vector<std::array<int64_t, 2>> shapes = {{1, 1}, {13, 37}, {48, 64}, {100, 272}, {3, 2056}};
  for (const auto& [r, c] : shapes)
    for (const Fp8Rule rule : kRules) {
      SCOPED_TRACE(testing::Message() << r << " x " << c);
      const Tensor x = normal({r, c + 8});
      x[0].mul_(1e-30);
      x[r - 1].mul_(1e5);
      expect_casts(x.narrow(1, 0, c).contiguous(), rule);
      expect_casts(x.narrow(1, 8, c), rule);
      expect_casts(x.narrow(1, 3, c), rule);
    }
}

TEST_P(Fp8Test, LetsNanWinAndKeepsZeros) {
  Tensor x = at::ones({3, 20}).to(at::kBFloat16);
  x[0][7] = NAN, x[0][8] = INFINITY, x[1].zero_();
  x = on_device(x);
  for (const Fp8Rule rule : kRules) {
    const Cast made = rows(x, rule);
    EXPECT_TRUE(at::isnan(made.factors[0]).item<bool>());
    EXPECT_TRUE((made.codes.cpu()[0] == 0x7f).all().item<bool>());
    EXPECT_TRUE((made.codes.cpu()[1] == 0).all().item<bool>());
    EXPECT_TRUE(at::isnan(by_amax(x, rule, false, true).factors).all().item<bool>());
    EXPECT_EQ(at::isnan(by_amax(x, rule, true, false).factors).sum().item<int64_t>(), 1);
  }
}

TEST_P(Fp8Test, TurnsCodes) {
  const std::vector<std::array<int64_t, 2>> shapes = {{1, 1}, {13, 37}, {64, 48}, {33, 100}, {3, 2056}};
  for (const auto& [r, c] : shapes) {
    const Tensor codes = at::randint(256, {r, c}, at::kByte), given = on_device(codes);
    const Tensor factor = on_device(at::full({1}, 0.75f));
    Cast made = room(c, r);
    table_->fp8_turn({r, c}, given.const_data_ptr<uint8_t>(), factor.const_data_ptr<float>(),
                     bytes(made.codes), made.factors.mutable_data_ptr<float>(), stream_of(given));
    EXPECT_TRUE(at::equal(made.codes.cpu(), codes.t())) << r << " x " << c;
    EXPECT_TRUE((made.factors.cpu() == 0.75f).all().item<bool>());
  }
}

TEST_P(Fp8Test, ActivationsGiveTheCodesOfACastApart) {
  const std::vector<Activation> kinds = {Activation::kGelu, Activation::kGeluTanh, Activation::kQuickGelu,
                                         Activation::kRelu, Activation::kSilu};
  for (const auto& [r, c] : std::vector<std::array<int64_t, 2>>{{1, 1}, {5, 37}, {3, 272}, {2, 2056}})
    for (const Activation f : kinds)
      for (const bool gated : {false, true})
        for (const bool has_bias : {false, true}) {
          if (gated && has_bias) continue;
          SCOPED_TRACE(testing::Message() << r << " x " << c << (gated ? " gated" : has_bias ? " bias" : ""));
          const RowsShape shape = {r, c};
          Tensor x = normal({r, gated ? 2 * c : c}, 2.0);
          x[0][0] = -0.0;
          const Tensor bias = normal({c});
          Tensor apart = empty({r, c}), y = empty({r, c}), amax = empty_fp32({r}), found = empty_fp32({r});
          if (gated)
            table_->gated_activation(shape, dtype_, f, x.data_ptr(), apart.data_ptr(), stream_of(x));
          else if (has_bias)
            table_->bias_activation(shape, dtype_, f, bias.data_ptr(), x.data_ptr(), apart.data_ptr(),
                                    stream_of(x));
          else
            table_->activation(r * c, dtype_, f, x.data_ptr(), apart.data_ptr(), stream_of(x));
          const void* added = has_bias ? bias.data_ptr() : nullptr;
          for (const Fp8Rule rule : {kRules[0], kRules[1]}) {
            const Cast wanted = rows(apart, rule);
            for (void* const to : {y.data_ptr(), static_cast<void*>(nullptr)}) {
              Cast made = room(r, c);
              table_->activation_casts(
                  shape, f, gated, added, x.data_ptr(), to,
                  {rule.power_of_two, bytes(made.codes), made.factors.mutable_data_ptr<float>()},
                  stream_of(x));
              EXPECT_TRUE(at::equal(made.codes, wanted.codes) && at::equal(made.factors, wanted.factors));
            }
            EXPECT_TRUE(at::equal(y, apart));
          }
          table_->fp8_row_amax(shape, c, apart.data_ptr(), amax.mutable_data_ptr<float>(), stream_of(x));
          y.zero_();
          table_->activation_casts(shape, f, gated, added, x.data_ptr(), y.data_ptr(),
                                   {.amax_R = found.mutable_data_ptr<float>()}, stream_of(x));
          EXPECT_TRUE(at::equal(y, apart) && at::equal(found, amax));
        }
}

INSTANTIATE_TEST_SUITE_P(Tables, Fp8Test,
                         testing::Combine(testing::ValuesIn(kWholeTables), testing::Values(at::kBFloat16)),
                         kernel_test_name);

TEST(Fp8Op, MultipliesCodesAsDouble) {
  at::manual_seed(3);
  const Tensor x = at::randn({70, 96}).to(at::kBFloat16), w = at::randn({33, 96}).to(at::kBFloat16);
  const Fp8Matrix left = to_fp8(x, false, Fp8Group::kRow, {Fp8Format::kE5m2, false}),
                  right = to_fp8(w, false, Fp8Group::kWhole, {});
  const auto numbers = [](const Fp8Matrix& m) {
    return m.codes_RD.to(at::kDouble) * m.factors_R.to(at::kDouble).unsqueeze(1);
  };
  const Tensor wanted = at::matmul(numbers(left), numbers(right).t()), added = at::randn({70, 33});
  Tensor fp32 = at::empty({70, 33}), bf16 = at::empty({70, 33}, at::kBFloat16);
  fp8_product(left, right, {}, false, fp32);
  EXPECT_TRUE(at::allclose(fp32.to(at::kDouble), wanted, 1e-5, 1e-4));
  fp8_product(left, right, added.to(at::kBFloat16), true, bf16);
  EXPECT_TRUE(
      at::allclose(bf16.to(at::kDouble), wanted + added.to(at::kBFloat16).to(at::kDouble), 4e-3, 1e-4));
  fp32.copy_(added);
  fp8_product(left, right, fp32, false, fp32);
  EXPECT_TRUE(at::allclose(fp32.to(at::kDouble), wanted + added.to(at::kDouble), 1e-5, 1e-4));
}

TEST(Fp8Op, PartsOfAMatrixGetTheCodesOfTheWhole) {
  at::manual_seed(6);
  const Tensor x = at::randn({96, 131}).mul_(3).to(at::kBFloat16), flat = x.flatten();
  const Fp8Matrix whole = to_fp8(x, false, Fp8Group::kWhole, {}),
                  turned = to_fp8(x, true, Fp8Group::kWhole, {});
  std::vector<Tensor> amax, codes;
  const std::vector<int64_t> parts = {1, 4095, 8192, 288};
  for (int64_t i = 0, begin = 0; i < 4; begin += parts[static_cast<size_t>(i++)])
    amax.push_back(fp8_amax(flat.narrow(0, begin, parts[static_cast<size_t>(i)])));
  const Tensor most = at::cat(amax).amax({0}, true);
  for (int64_t i = 0, begin = 0; i < 4; begin += parts[static_cast<size_t>(i++)]) {
    codes.push_back(at::empty({parts[static_cast<size_t>(i)]}, at::kFloat8_e4m3fn));
    fp8_codes(flat.narrow(0, begin, parts[static_cast<size_t>(i)]), most, codes.back());
    codes.back() = codes.back().view(at::kByte);
  }
  EXPECT_TRUE(at::equal(at::cat(codes), whole.codes_RD.view(at::kByte).flatten()));
  EXPECT_TRUE(at::equal(fp8_factors(most).expand({96}), whole.factors_R));
  const Fp8Matrix made = fp8_transposed(whole);
  EXPECT_TRUE(at::equal(made.codes_RD.view(at::kByte), turned.codes_RD.view(at::kByte)));
  EXPECT_TRUE(at::equal(made.factors_R, turned.factors_R));
  const Tensor none_and_nan = at::tensor({0.0f, NAN});
  const Tensor factors = fp8_factors(none_and_nan);
  EXPECT_EQ(factors[0].item<float>(),
            to_fp8(at::zeros({1, 1}, at::kBFloat16), false, Fp8Group::kWhole, {}).factors_R[0].item<float>());
  EXPECT_TRUE(std::isnan(factors[1].item<float>()));
}

TEST(Fp8Op, CastsOfKernelsAreThoseOfTheirResults) {
  at::manual_seed(5);
  const Tensor x = at::randn({12, 64}).to(at::kBFloat16), none;
  for (const Fp8Group group : {Fp8Group::kRow, Fp8Group::kWhole}) {
    Tensor y = at::empty({12, 32}, at::kBFloat16), no_y;
    RowCast cast(y, group, /*power_of_two=*/true);
    activation_with_cast(Activation::kSilu, /*gated=*/true, none, x, y, cast);
    const Fp8Matrix made = cast.finish(y), wanted = to_fp8(y, false, group, {Fp8Format::kE4m3, true});
    EXPECT_TRUE(at::equal(made.codes_RD.view(at::kByte), wanted.codes_RD.view(at::kByte)));
    EXPECT_TRUE(at::equal(made.factors_R, wanted.factors_R));
    EXPECT_EQ(cast.is_made(), group == Fp8Group::kRow);
    const auto without_y = [&] { activation_with_cast(Activation::kSilu, true, none, x, no_y, cast); };
    if (cast.is_made())
      EXPECT_NO_THROW(without_y());
    else
      EXPECT_NE(error_of(without_y).find("[activation_with_cast] y: expected"), std::string::npos);
  }
  Tensor wide = at::empty({12, 64}, at::kBFloat16);
  RowCast cast(wide, Fp8Group::kWhole, false);
  const std::string error =
      error_of([&] { activation_with_cast(Activation::kSilu, true, none, x, wide, cast); });
  EXPECT_NE(error.find("[activation_with_cast] y: expected BFloat16 [12, 32]"), std::string::npos) << error;
}

TEST(Fp8Op, RejectsOtherTypesAndShapes) {
  const Tensor x = at::ones({4, 16}).to(at::kBFloat16);
  const Fp8Matrix left = to_fp8(x, false, Fp8Group::kRow, {}), turned = to_fp8(x, true, Fp8Group::kRow, {});
  Tensor y = at::empty({4, 4}, at::kBFloat16);
  EXPECT_EQ(error_of([&] {
              to_fp8(at::ones({4, 16}), false, Fp8Group::kRow, {});
            }),
            "[to_fp8] x: expected BFloat16 [4, 16] contiguous on cpu, got Float [4, 16] contiguous on cpu");
  EXPECT_EQ(error_of([&] { fp8_product(left, turned, {}, false, y); }),
            "[fp8_product] the operands do not fit: their common dim is 16 on the left and 4 on the right");
  EXPECT_EQ(error_of([&] {
              fp8_transposed({x, left.factors_R});
            }),
            "[fp8_transposed] matrix: expected codes of fp8, got BFloat16");
  EXPECT_EQ(error_of([&] { fp8_amax(x); }),
            "[fp8_amax] x: expected BFloat16 [64] contiguous on cpu, got BFloat16 [4, 16] contiguous on cpu");
  Tensor bytes = at::empty({64}, at::kByte);
  EXPECT_EQ(
      error_of([&] { fp8_codes(x.flatten(), at::ones({1}), bytes); }),
      "[fp8_codes] codes: expected Float8_e4m3fn [64] contiguous on cpu, got Byte [64] contiguous on cpu");
  EXPECT_EQ(error_of([&] {
              fp8_product({x, left.factors_R}, left, {}, false, y);
            }),
            "[fp8_product] left: expected codes of fp8, got BFloat16");
  Tensor half = at::empty({4, 4}, at::kHalf);
  EXPECT_EQ(error_of([&] { fp8_product(left, left, {}, false, half); }),
            "[fp8_product] expected a result of bf16 or fp32, got Half");
}

}  // namespace
}  // namespace tycho
