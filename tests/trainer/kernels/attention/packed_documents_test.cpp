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

// Needs a device, and so runs on a GPU or its stand-in.
TEST(PackedDocumentsOnGpu, SpansAreWhatTheirQueriesSee) {
  if (!find_table("cuda")) GTEST_SKIP() << "no GPU";
  // Documents of 2, 3 and 3 tokens, and one of 8; tokens 1 to 3 and 5.
  const Tensor number_N = at::tensor({0, 0, 1, 1, 1, 2, 2, 2, /**/ 5, 5, 5, 5, 5, 5, 5, 5}, at::kInt);
  const PackedDocuments documents =
      documents_on(at::kCUDA, number_N, 8, std::array<TokenSpan, 2>{{{1, 3}, {5, 1}}});
  ASSERT_EQ(documents.spans_B.size(), 2U);
  const auto expect = [](const SpanDocuments& of, int64_t first_token, const std::vector<int>& queries,
                         const std::vector<int>& keys, int64_t most_queries, int64_t most_keys) {
    EXPECT_EQ(of.first_token, first_token);
    EXPECT_TRUE(at::equal(of.first_query_S1.cpu(), at::tensor(queries, at::kInt)));
    EXPECT_TRUE(at::equal(of.first_key_S1.cpu(), at::tensor(keys, at::kInt)));
    EXPECT_EQ(of.most_queries, most_queries);
    EXPECT_EQ(of.most_keys, most_keys);
  };
  expect(documents.spans_B[0][0], 0, {0, 1, 3}, {0, 2, 4}, 2, 2);
  expect(documents.spans_B[0][1], 5, {0, 1}, {0, 1}, 1, 1);
  expect(documents.spans_B[1][0], 0, {0, 3}, {0, 4}, 3, 4);
  expect(documents.spans_B[1][1], 0, {0, 1}, {0, 6}, 1, 6);
}

TEST(PackedDocuments, NameArgumentsThatDoNotFit) {
  const auto error = [](const Tensor& number_N, int64_t seq) {
    return error_of([&] { documents_on(at::kCPU, number_N, seq); });
  };
  EXPECT_EQ(error(at::tensor({5, 3}, at::kInt), 2),
            "[documents] expected numbers that do not fall along a row, got 3 after 5");
  EXPECT_EQ(error(at::tensor({0, 0, 0}, at::kInt), 2),
            "[documents] expected whole rows of 2 tokens, got 3 tokens");
  EXPECT_NE(error(at::tensor({0, 1}, at::kLong), 2).find("[documents] numbers: expected Int"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
