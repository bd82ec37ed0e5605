// Where documents of packed rows start.
#include "trainer/kernels/attention/packed_documents.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

TEST(PackedDocuments, StartWhereNumbersOrRowsDo) {
  const Tensor number_N = at::tensor({0, 0, 1, 4, /**/ 4, 4, 4, 4, /**/ 0, 1, 2, 2}, at::kInt);
  EXPECT_EQ(document_starts(number_N, 4), (std::vector<int32_t>{0, 2, 3, 4, 8, 9, 10, 12}));
  EXPECT_EQ(document_starts(number_N.narrow(0, 4, 4), 4), (std::vector<int32_t>{0, 4}));
}

TEST(PackedDocuments, OnACpuAreTheirNumbers) {
  const Tensor number_N = at::tensor({0, 1}, at::kInt);
  const PackedDocuments documents = documents_on(at::kCPU, number_N, 2);
  EXPECT_TRUE(documents.number_N.is_same(number_N));
  EXPECT_FALSE(documents.first_token_S1.defined());
  EXPECT_TRUE(at::equal(documents_on(at::kCPU, at::tensor({0, 0, 1, 1, 1, 3}, at::kInt), 3).position_N,
                        at::tensor({0, 1, 0, 0, 1, 0}, at::kInt)));
  EXPECT_FALSE(documents_on(at::kCPU, {}, 2).number_N.defined());
}

TEST(PackedDocuments, NameArgumentsThatDoNotFit) {
  const auto error = [](const Tensor& number_N, int64_t seq) {
    return error_of([&] { documents_on(at::kCPU, number_N, seq); });
  };
  EXPECT_EQ(error(at::tensor({5, 3}, at::kInt), 2),
            "[documents] wanted numbers that do not fall along a row, got 3 after 5");
  EXPECT_EQ(error(at::tensor({0, 0, 0}, at::kInt), 2),
            "[documents] wanted whole rows of 2 tokens, got 3 tokens");
  EXPECT_NE(error(at::tensor({0, 1}, at::kLong), 2).find("[documents] numbers: wanted Int"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
