// The token table against ATen.
#include "trainer/kernels/embedding.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class EmbeddingTest : public KernelTest {};

TEST_P(EmbeddingTest, LooksUpRowsAndSumsTheirGradients) {
  for (const auto& [rows, vocab, dim] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {50, 7, 33}, {700, 300, 65}, {64, 1000, 256}}) {
    const Tensor tokens = ints({rows}, 0, vocab), table = normal({vocab, dim}), dy = normal({rows, dim});
    Tensor y = empty({rows, dim});
    table_->embedding({rows, dim}, dtype_, tokens.const_data_ptr<int32_t>(), table.const_data_ptr(),
                      y.mutable_data_ptr(), stream_of(y));
    EXPECT_TRUE(at::equal(y, table.index_select(0, tokens)));
    const Tensor before = normal_fp32({vocab, dim});
    Tensor workspace =
        at::empty({table_->embedding_backward_workspace({rows, dim}, vocab)}, dy.options().dtype(at::kByte));
    const auto backward = [&] {
      Tensor dtable = before.clone();
      table_->embedding_backward({rows, dim}, dtype_, tokens.const_data_ptr<int32_t>(), vocab,
                                 dy.const_data_ptr(), dtable.mutable_data_ptr<float>(),
                                 workspace.mutable_data_ptr(), stream_of(y));
      return dtable;
    };
    const Tensor first = backward();
    expect_close(first, as_double(before).index_add(0, tokens.cpu(), as_double(dy)), 8);
    EXPECT_TRUE(at::equal(first, backward()));
    at::set_num_threads(1);
    EXPECT_TRUE(at::equal(first, backward()));
    at::set_num_threads(2);
  }
}

TYCHO_ON_EVERY_TABLE(EmbeddingTest);

TEST(EmbeddingOp, NamesATokenOutsideTheVocabulary) {
  const Tensor table = at::randn({5, 3});
  Tensor tokens = at::tensor({0, 4, 5}, at::kInt), y = at::empty({3, 3}), dtable = at::zeros({5, 3});
  EXPECT_EQ(error_of([&] { embedding(tokens, table, y); }),
            "[embedding] token 5 at position 2 is outside the vocabulary of 5. Was the data made with "
            "another tokenizer?");
  tokens[2] = -1;
  EXPECT_NE(error_of([&] { embedding_backward(tokens, y, dtable); }).find("token -1"), std::string::npos);
  tokens[2] = 2;
  embedding(tokens, table, y);
  embedding_backward(tokens, y, dtable);
  EXPECT_TRUE(at::equal(dtable[2], table[2]));
}

}  // namespace
}  // namespace tycho
