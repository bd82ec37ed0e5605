// Sums over ranks against plain loops.
#include "trainer/comm/sockets/rank_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tycho {
namespace {

template <class T>
void expect_sums(SumType type, int num_rows, int64_t count) {
  std::vector<std::vector<T>> rows;
  std::vector<T> wanted(static_cast<size_t>(count), T{0});
  for (int r = 0; r < num_rows; ++r) {
    rows.emplace_back();
    for (int64_t i = 0; i < count; ++i) {
      const auto x =
          static_cast<T>(static_cast<double>((r * 37 + i * 11) % 61) / (std::is_integral_v<T> ? 1 : 7));
      rows.back().push_back(x);
      T& sum = wanted[static_cast<size_t>(i)];
      sum = static_cast<T>(sum + x);
    }
  }
  for (int in_place = -1; in_place < num_rows; ++in_place) {
    auto copies = rows;
    std::vector<T> out(static_cast<size_t>(count));
    std::vector<const void*> pointers;
    for (auto& row : copies) pointers.push_back(row.data());
    T* to = in_place < 0 ? out.data() : copies[static_cast<size_t>(in_place)].data();
    sum_rows(type, to, pointers.data(), num_rows, count);
    EXPECT_EQ(std::memcmp(to, wanted.data(), wanted.size() * sizeof(T)), 0) << num_rows << " " << count;
  }
}

TEST(SumRows, AddsInTheOrderOfRowsIntoAnyOfThem) {
  for (const int num_rows : {1, 2, 3, 7})
    for (const int64_t count : {0, 1, 511, 512, 1543}) {
      expect_sums<float>(SumType::kFp32, num_rows, count);
      expect_sums<double>(SumType::kFp64, num_rows, count);
      expect_sums<int32_t>(SumType::kInt32, num_rows, count);
      expect_sums<int64_t>(SumType::kInt64, num_rows, count);
      expect_sums<uint8_t>(SumType::kByte, num_rows, count);
    }
}

TEST(SumRows, AddsHalvesInATree) {
  const std::vector<float> x = {1e8F, 1, -1e8F, 1, 3, 1e7F, -1e7F, 0.25F};
  std::vector<const void*> rows;
  for (const float& one : x) rows.push_back(&one);
  const auto sum = [&](int num_rows) {
    float out = 0;
    sum_rows(SumType::kFp32, &out, rows.data(), num_rows, 1, SumOrder::kTree);
    return out;
  };
  EXPECT_EQ(sum(8), ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])));
  EXPECT_EQ(sum(6), ((x[0] + x[1]) + x[2]) + ((x[3] + x[4]) + x[5]));
  EXPECT_EQ(sum(3), (x[0] + x[1]) + x[2]);
  EXPECT_EQ(sum(1), x[0]);
  float in_order = 0;
  sum_rows(SumType::kFp32, &in_order, rows.data(), 8, 1);
  EXPECT_NE(sum(8), in_order) << "the numbers do not tell orders apart";
}

TEST(SumRows, AddsLongRowsInATree) {
  std::vector<std::vector<double>> rows(4, std::vector<double>(1543));
  std::vector<const void*> pointers;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < rows[r].size(); ++i) rows[r][i] = std::sin(static_cast<double>(31 * r + i));
    pointers.push_back(rows[r].data());
  }
  const auto copies = rows;
  sum_rows(SumType::kFp64, rows[2].data(), pointers.data(), 4, 1543, SumOrder::kTree);
  for (size_t i = 0; i < 1543; ++i)
    ASSERT_EQ(rows[2][i], (copies[0][i] + copies[1][i]) + (copies[2][i] + copies[3][i])) << i;
}

uint16_t bf16(float x) {  // truncates: for numbers that bf16 holds exactly
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

uint16_t bf16_sum(const std::vector<float>& xs) {
  std::vector<uint16_t> numbers;
  for (const float x : xs) numbers.push_back(bf16(x));
  std::vector<const void*> rows;
  for (const uint16_t& number : numbers) rows.push_back(&number);
  uint16_t out = 0;
  sum_rows(SumType::kBf16, &out, rows.data(), static_cast<int>(rows.size()), 1);
  return out;
}

TEST(SumRows, Bf16IsSummedInFp32AndRoundedOnceToNearestEven) {
  EXPECT_EQ(bf16_sum({256, 1, 1}), bf16(258));  // in bf16 alone, 256 + 1 would be 256 each time
  EXPECT_EQ(bf16_sum({256, 1}), bf16(256));     // a tie: to even
  EXPECT_EQ(bf16_sum({258, 1}), bf16(260));
  EXPECT_EQ(bf16_sum({256, 1, 0.5F}), bf16(258));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(bf16_sum({infinity, 1}), bf16(infinity));
  EXPECT_EQ(bf16_sum({infinity, -infinity}), 0x7fc0);
  EXPECT_EQ(bf16_sum({0x1.fep127F, 0x1.fep127F}), bf16(infinity));
}

TEST(SumRows, IntegersWrapAround) {
  const int32_t most = std::numeric_limits<int32_t>::max(), one = 1;
  const void* rows[] = {&most, &one};
  int32_t out = 0;
  sum_rows(SumType::kInt32, &out, rows, 2, 1);
  EXPECT_EQ(out, std::numeric_limits<int32_t>::min());
}

}  // namespace
}  // namespace tycho
