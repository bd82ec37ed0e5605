// Where the GPU's kernels meet limits: shared memory, errors of CUDA's libraries, and buffers of more than
// 2^31 elements, of which the emulated GPU runs the last blocks.
#include <sys/mman.h>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

const KernelTable& table() { return *emulated_cuda().table; }

float* floats(Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

TEST(GpuLimits, NormsNameTheSharedMemoryThatTheGpuLacks) {
  emulated_cuda().limit_shared(99 * 1024);  // of an L40S
  for (const int64_t dim : {12000, 13000, 26000}) {
    SCOPED_TRACE(dim);
    const NormShape shape{1, 1, dim, dim, dim, dim};
    Tensor row = at::zeros({dim}), stats = at::zeros({1}), sums = at::zeros({dim});
    Tensor workspace = at::zeros({2 * dim});
    const auto layer = [&] {
      table().layer_norm_backward(shape, Dtype::kFp32, floats(row), floats(row), floats(stats), floats(stats),
                                  floats(row), floats(row), false, floats(sums), floats(sums), false,
                                  floats(workspace), nullptr);
    };
    const auto rms = [&] {
      table().rms_norm_backward(shape, Dtype::kFp32, floats(row), floats(row), 0, floats(stats), floats(row),
                                floats(row), false, floats(sums), false, floats(workspace), nullptr);
    };
    if (dim > 12000)
      EXPECT_EQ(
          error_of(layer),
          fmt::format("[layer_norm_backward] expected {} bytes of shared memory for each block, more than "
                      "this GPU has: invalid argument. Its rows are too wide for this GPU; use a "
                      "narrower model or a newer GPU",
                      8 * dim));
    else
      layer();
    if (dim > 13000)
      EXPECT_NE(error_of(rms).find("[rms_norm_backward] expected 104000 bytes"), std::string::npos);
    else
      rms();
  }
  emulated_cuda().limit_shared(227 * 1024);
}

TEST(GpuLimits, AFailedTokenSortIsReportedAndNothingIsAdded) {
  const RowsShape shape{50, 8};
  const Tensor tokens = at::zeros({50}, at::kInt), dy = at::ones({50, 8});
  Tensor dtable = at::zeros({3, 8});
  Tensor workspace = at::empty({table().embedding_backward_workspace(shape, 3)}, at::kByte);
  const auto backward = [&] {
    table().embedding_backward(shape, Dtype::kFp32, tokens.const_data_ptr<int32_t>(), 3, dy.const_data_ptr(),
                               floats(dtable), workspace.mutable_data_ptr(), nullptr);
  };
  // The first query is the emulated GPU's own: it looks up what the call declares.
  emulated_cuda().fail_sort(2);
  EXPECT_EQ(
      error_of(backward),
      "[embedding_backward] expected the bytes that sorting the tokens takes, got a CUDA error: invalid "
      "argument");
  emulated_cuda().fail_sort(3);
  EXPECT_EQ(error_of(backward),
            "[embedding_backward] expected the tokens sorted, got a CUDA error: invalid argument");
  EXPECT_TRUE(at::equal(dtable, at::zeros({3, 8})));
  backward();
  EXPECT_EQ(dtable.sum().item<float>(), 400.0f);
}

/// More elements than memory has: zeros until they are written.
template <class T>
class Sparse {
 public:
  explicit Sparse(int64_t n) : bytes_(static_cast<size_t>(n) * sizeof(T)) {
    void* const made =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TYCHO_CHECK(made != MAP_FAILED, "[test] expected {} bytes of address space", bytes_);
    data_ = static_cast<T*>(made);
    emulated_cuda().remember(data_, bytes_);
  }
  ~Sparse() {
    emulated_cuda().forget(data_);
    munmap(data_, bytes_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  size_t bytes_;
  T* data_ = nullptr;
};

/// Rows whose last elements lie beyond 2^31, and bf16 numbers.
class LargeBuffers : public testing::Test {
 protected:
  static constexpr int64_t kDim = 4096, kRows = (int64_t{1} << 31) / kDim + 40, kCount = kRows * kDim;
  static constexpr RowsShape kShape{kRows, kDim};
  static constexpr uint16_t kOne = 0x3f80, kTwo = 0x4000, kThree = 0x4040, kHalf = 0x3f00;
  static constexpr int64_t kLast = kCount - 1;

  void SetUp() override { emulated_cuda().run_last_blocks(2); }
  void TearDown() override { emulated_cuda().run_last_blocks(0); }
};

TEST_F(LargeBuffers, FlatOnes) {
  // A multiple of what a full grid takes in one stride, so that its last block has the last element.
  constexpr int64_t kFlat = 17 * (int64_t{1} << 27), kEnd = kFlat - 1;
  Sparse<uint16_t> x(kFlat), y(kFlat);
  Sparse<float> sum(kFlat);
  x[kEnd] = kThree, sum[kEnd] = 1.0f;
  table().cast(kFlat, Dtype::kBf16, x.data(), Dtype::kBf16, y.data(), nullptr);
  EXPECT_EQ(y[kEnd], kThree);
  table().add_to_fp32(kFlat, Dtype::kBf16, x.data(), sum.data(), nullptr);
  EXPECT_EQ(sum[kEnd], 4.0f);
  table().clamp(kFlat, Dtype::kBf16, 2.0f, x.data(), y.data(), nullptr);
  EXPECT_EQ(y[kEnd], kTwo);
  table().activation(kFlat, Dtype::kBf16, Activation::kRelu, x.data(), y.data(), nullptr);
  EXPECT_EQ(y[kEnd], kThree);
}

TEST_F(LargeBuffers, RowsWithABias) {
  Sparse<uint16_t> x(kCount), y(kCount), dx(kCount), bias(kDim);
  Sparse<float> dbias(kDim), workspace(table().bias_gradient_workspace(kShape));
  x[kLast] = kOne, bias[kDim - 1] = kTwo;
  table().add_bias(kShape, Dtype::kBf16, bias.data(), x.data(), y.data(), nullptr);
  EXPECT_EQ(y[kLast], kThree);
  y[kLast] = 0;
  table().bias_activation(kShape, Dtype::kBf16, Activation::kRelu, bias.data(), x.data(), y.data(), nullptr);
  EXPECT_EQ(y[kLast], kThree);
  table().bias_gradient(kShape, Dtype::kBf16, x.data(), dbias.data(), false, workspace.data(), nullptr);
  EXPECT_EQ(dbias[kDim - 1], 1.0f);
  table().bias_activation_backward(kShape, Dtype::kBf16, Activation::kRelu, bias.data(), x.data(), x.data(),
                                   dx.data(), y.data(), dbias.data(), false, workspace.data(), nullptr);
  EXPECT_EQ(dx[kLast], kOne);
  EXPECT_EQ(dbias[kDim - 1], 1.0f);
}

TEST_F(LargeBuffers, GatedOnesAndDropout) {
  const RowsShape half{kRows, kDim / 2};
  Sparse<uint16_t> gate_up(kCount), dgate_up(kCount), y(kCount), dy(kCount);
  gate_up[kLast - kDim / 2] = kOne, gate_up[kLast] = kThree, dy[kCount / 2 - 1] = kTwo;
  table().gated_activation(half, Dtype::kBf16, Activation::kRelu, gate_up.data(), y.data(), nullptr);
  EXPECT_EQ(y[kCount / 2 - 1], kThree);
  table().gated_activation_backward(half, Dtype::kBf16, Activation::kRelu, gate_up.data(), dy.data(),
                                    dgate_up.data(), y.data(), nullptr);
  EXPECT_EQ(dgate_up[kLast], kTwo);
  table().dropout(kShape, Dtype::kBf16, {}, gate_up.data(), nullptr, y.data(), nullptr);
  EXPECT_EQ(y[kLast], kThree);
}

TEST_F(LargeBuffers, TablesOfTokensAndPositions) {
  const int64_t vocab = kRows;
  const RowsShape shape{3, kDim};
  Sparse<uint16_t> table_VD(kCount), y(kCount);
  Sparse<float> dtable(kCount);
  Sparse<int32_t> tokens(kRows);
  table_VD[kLast] = kTwo, tokens[2] = static_cast<int32_t>(vocab - 1);
  table().embedding(shape, Dtype::kBf16, tokens.data(), table_VD.data(), {table_VD.data(), 3, kRows - 3},
                    y.data(), nullptr);
  EXPECT_EQ(y[3 * kDim - 1], 0x4080);  // 4
  Sparse<char> workspace(table().embedding_backward_workspace(shape, vocab));
  emulated_cuda().run_last_blocks(0);
  table().embedding_backward(shape, Dtype::kBf16, tokens.data(), vocab, y.data(), dtable.data(),
                             workspace.data(), nullptr);
  EXPECT_EQ(dtable[kLast], 4.0f);
  emulated_cuda().run_last_blocks(2);
  y[kLast] = kThree;
  table().position_gradient(kShape, Dtype::kBf16, kRows, y.data(), dtable.data(), true, nullptr);
  EXPECT_EQ(dtable[kLast], 7.0f);
}

TEST_F(LargeBuffers, RowsFarApart) {
  constexpr int64_t kStep = int64_t{1} << 30, kFar = 3 * kStep;
  emulated_cuda().run_last_blocks(0);
  Sparse<uint16_t> x(kFar + 64), y(kFar + 64), weight(64);
  Sparse<float> stats(8), dweight(64), dbias(64), workspace(4096);
  const NormShape shape{4, 1, 64, kStep, kStep, kStep};
  for (int i = 0; i < 64; ++i) x[kFar + i] = i % 2 ? kOne : 0xbf80, weight[i] = kTwo;
  table().rms_norm(shape, Dtype::kBf16, x.data(), weight.data(), 0, 0.0f, y.data(), stats.data(), {}, {},
                   nullptr);
  EXPECT_EQ(y[kFar + 63], kTwo);
  y[kFar + 63] = 0;
  table().layer_norm(shape, Dtype::kBf16, x.data(), weight.data(), nullptr, 1e-12f, y.data(), stats.data(),
                     stats.data() + 4, {}, {}, nullptr);
  EXPECT_EQ(y[kFar + 63], kTwo);
  table().layer_norm_backward(shape, Dtype::kBf16, x.data(), weight.data(), stats.data(), stats.data() + 4,
                              x.data(), y.data(), false, dweight.data(), dbias.data(), false,
                              workspace.data(), nullptr);
  EXPECT_EQ(dweight[63], 1.0f);
  table().rms_norm_backward(shape, Dtype::kBf16, x.data(), weight.data(), 0, stats.data() + 4, x.data(),
                            y.data(), false, dweight.data(), false, workspace.data(), nullptr);
  EXPECT_EQ(dweight[63], 1.0f);
  Sparse<float> cos_sin(4 * 64);
  for (int i = 0; i < 4 * 64; ++i) cos_sin[i] = i % 64 < 32 ? 0.0f : 1.0f;  // a quarter turn
  x[kFar] = kThree;
  table().rope({4, 4, 0, kStep, 1, 64, 64}, Dtype::kBf16, cos_sin.data(), false, x.data(), nullptr);
  EXPECT_EQ(x[kFar + 32], kThree);
  x[kFar + 63] = kOne;
  table().temperature({4, 64}, kStep, Dtype::kBf16, {1.0f, 1e9f}, {4, 0, nullptr}, x.data(), nullptr);
  EXPECT_EQ(x[kFar + 63], kOne);
}

TEST_F(LargeBuffers, Logits) {
  Sparse<uint16_t> logits(kCount);
  Sparse<int32_t> targets(kRows);
  Sparse<float> losses(kRows);
  float weight = 1.0f;
  for (int64_t i = 0; i < kDim; ++i) logits[kCount - kDim + i] = kHalf;
  targets[kRows - 1] = kDim - 1;
  table().cross_entropy(kShape, Dtype::kBf16, {}, logits.data(), targets.data(), &weight, true, losses.data(),
                        nullptr);
  EXPECT_NEAR(losses[kRows - 1], std::log(static_cast<double>(kDim)), 1e-4);
  EXPECT_EQ(logits[kLast], 0xbf80);  // -1, to bf16
  EXPECT_EQ(losses[kRows - 3], 0.0f);
  Sparse<float> statistics(kTokenStatistics * kRows), gradients(kLossStatistics * kRows);
  logits[kLast] = kTwo, gradients[kMaxLogit * kRows + kRows - 1] = 3.0f;
  table().token_statistics(kShape, Dtype::kBf16, {}, logits.data(), targets.data(), statistics.data(),
                           nullptr);
  EXPECT_EQ(statistics[kMaxLogit * kRows + kRows - 1], 2.0f);
  table().token_statistics_backward(kShape, Dtype::kBf16, {}, kDim, logits.data(), targets.data(),
                                    statistics.data(), gradients.data(), &weight, nullptr);
  EXPECT_EQ(logits[kLast], kThree);
}

}  // namespace
}  // namespace tycho
