// Sums of rows by operators against those of rows in host memory.
#include "trainer/comm/device_rank_sums.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/trainer/aten.h"
#include "trainer/comm/sockets/rank_sums.h"

namespace tycho {
namespace {

SumType type_of(at::ScalarType dtype) {
  return dtype == at::kFloat ? SumType::kFp32 : dtype == at::kDouble ? SumType::kFp64 : SumType::kBf16;
}

Tensor summed(const Tensor& rows_RN, SumOrder order) {
  std::vector<const void*> rows;
  for (int64_t r = 0; r < rows_RN.size(0); ++r) rows.push_back(rows_RN[r].const_data_ptr());
  Tensor out = at::empty({rows_RN.size(1)}, rows_RN.options());
  sum_rows(type_of(rows_RN.scalar_type()), out.mutable_data_ptr(), rows.data(),
           static_cast<int>(rows_RN.size(0)), rows_RN.size(1), order);
  return out;
}

TEST(SumAsTree, HasTheBitsOfRowsInHostMemory) {
  at::manual_seed(3);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const int64_t num_rows : {1, 2, 3, 4, 6, 7, 8, 12, 16})
      for (const int64_t count : {1, 63, 1025}) {
        const Tensor rows_RN = at::randn({num_rows, count}, at::kDouble).to(dtype);
        const Tensor wanted = summed(rows_RN, SumOrder::kTree);
        EXPECT_TRUE(at::equal(sum_as_tree(rows_RN.clone()), wanted)) << dtype << " " << num_rows;
      }
}

TEST(SumAsTree, IsNotTheOrderOfRanks) {
  at::manual_seed(4);
  const Tensor rows_RN = at::randn({8, 1000});
  EXPECT_FALSE(at::equal(sum_as_tree(rows_RN.clone()), summed(rows_RN, SumOrder::kRanks)));
}

}  // namespace
}  // namespace tycho
