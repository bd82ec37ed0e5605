// The tables of tokens and positions against ATen.
#include "trainer/kernels/embedding.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class EmbeddingTest : public KernelTest {};

TEST_P(EmbeddingTest, LooksUpRowsAndSumsTheirGradients) {
  for (const auto& [rows, vocab, dim] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {50, 7, 33}, {700, 300, 65}, {64, 1000, 256}, {30, 4, 2 * 2048 + 5}}) {
    const Tensor tokens = ints({rows}, 0, vocab), table = normal({vocab, dim}), dy = normal({rows, dim});
    Tensor y = empty({rows, dim});
    table_->embedding({rows, dim}, dtype_, tokens.const_data_ptr<int32_t>(), table.const_data_ptr(), {},
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

TEST_P(EmbeddingTest, AddsPositionsAndSumsTheirGradientsOverTheBatch) {
  struct Case {
    int64_t batch, seq, first, positions, dim;
  };
  for (const Case& c : {Case{1, 1, 0, 1, 1}, Case{3, 5, 2, 9, 33}, Case{7, 40, 0, 40, 256}}) {
    const int64_t rows = c.batch * c.seq;
    const RowsShape shape{rows, c.dim};
    const Tensor tokens = ints({rows}, 0, 11), table = normal({11, c.dim}), dy = normal({rows, c.dim});
    const Tensor positions = normal({c.positions, c.dim}), before = normal_fp32({c.positions, c.dim});
    Tensor y = empty({rows, c.dim});
    table_->embedding(shape, dtype_, tokens.const_data_ptr<int32_t>(), table.const_data_ptr(),
                      {positions.const_data_ptr(), c.seq, c.first}, y.mutable_data_ptr(), stream_of(y));
    const Tensor rows_of_positions = as_double(positions).narrow(0, c.first, c.seq).repeat({c.batch, 1});
    expect_close(y, as_double(table).index_select(0, tokens.cpu()) + rows_of_positions);
    const auto backward = [&](bool add) {
      Tensor dtable = before.clone();
      table_->position_gradient(shape, dtype_, c.seq, dy.const_data_ptr(), dtable.mutable_data_ptr<float>(),
                                add, stream_of(y));
      return dtable.narrow(0, 0, c.seq);
    };
    const Tensor wanted = as_double(dy).view({c.batch, c.seq, c.dim}).sum(0);
    const Tensor added = backward(true);
    expect_close(backward(false), wanted, 4);
    expect_close(added, wanted + as_double(before).narrow(0, 0, c.seq), 4);
    at::set_num_threads(1);
    EXPECT_TRUE(at::equal(added, backward(true)));
    at::set_num_threads(2);
  }
}

TYCHO_ON_EVERY_TABLE(EmbeddingTest);

TEST(EmbeddingOp, NamesATokenOutsideTheVocabulary) {
  const Tensor table = at::randn({5, 3});
  Tensor tokens = at::tensor({0, 4, 5}, at::kInt), y = at::empty({3, 3}), dtable = at::zeros({5, 3});
  EXPECT_EQ(error_of([&] { embedding(tokens, table, y); }),
            "[embedding] token 5 at position 2 is outside the vocabulary of 5. Was the data made with a "
            "different tokenizer?");
  tokens[2] = -1;
  EXPECT_NE(error_of([&] { embedding_backward(tokens, y, dtable); }).find("token -1"), std::string::npos);
  tokens[2] = 2;
  embedding(tokens, table, y);
  embedding_backward(tokens, y, dtable);
  EXPECT_TRUE(at::equal(dtable[2], table[2]));
}

TEST(EmbeddingOp, NamesAPositionBeyondTheTable) {
  const Tensor table = at::randn({5, 3}), positions = at::randn({4, 3});
  const Tensor tokens = at::tensor({0, 4, 1, 2, 2, 2}, at::kInt);
  Tensor y = at::empty({6, 3}), dtable = at::zeros({4, 3});
  EXPECT_EQ(error_of([&] {
              embedding(tokens, table, y, {positions, 3, 2});
            }),
            "[embedding] positions 2..4 are outside the table of 4");
  EXPECT_EQ(error_of([&] { position_gradient(y, 5, dtable, false); }),
            "[position_gradient] positions 0..4 are outside the table of 4");
  EXPECT_NE(error_of([&] {
              embedding(tokens, table, y, {at::randn({4, 2}), 3});
            }).find("positions: expected"),
            std::string::npos);
  embedding(tokens, table, y, {positions, 3, 1});
  EXPECT_TRUE(at::equal(y[4], table[2] + positions[2]));
  dtable.fill_(7.0);
  position_gradient(at::ones({6, 3}), 3, dtable, false);
  EXPECT_TRUE(at::equal(dtable.select(1, 0), at::tensor({2.0f, 2.0f, 2.0f, 0.0f})));
  position_gradient(at::ones({6, 3}), 2, dtable, true);
  EXPECT_TRUE(at::equal(dtable.select(1, 0), at::tensor({5.0f, 5.0f, 2.0f, 0.0f})));
}

}  // namespace
}  // namespace tycho
