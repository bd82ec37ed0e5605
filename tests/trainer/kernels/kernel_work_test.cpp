// Checks what kernels declare about products and attention; the emulated GPU checks every other kernel at
// every call.
#include "trainer/kernels/twins/kernel_work.h"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

/// Bytes that a test watches: all NaN, but for what a kernel declares that it reads.
class Watched {
 public:
  explicit Watched(const Tensor& numbers) : numbers_(numbers), watched_(at::full_like(numbers, kNan)) {}
  float* data() { return watched_.mutable_data_ptr<float>(); }
  /// Puts the numbers where the kernel reads.
  void allow(const KernelWork& work) {
    for (const Access& one : work.accesses)
      if (!one.written) for_each(one, [&](int64_t i) { data()[i] = numbers_.const_data_ptr<float>()[i]; });
    before_ = watched_.clone();
  }
  /// Compares what has changed with the declared writes.
  void expect_written(const KernelWork& work) {
    Tensor declared = at::zeros(watched_.sizes());
    for (const Access& one : work.accesses)
      if (one.written) for_each(one, [&](int64_t i) { declared.mutable_data_ptr<float>()[i] = 1; });
    for (int64_t i = 0; i < watched_.numel(); ++i) {
      const float now = data()[i], before = before_.const_data_ptr<float>()[i];
      const bool changed = !(now == before || (std::isnan(now) && std::isnan(before)));
      ASSERT_EQ(changed, declared.const_data_ptr<float>()[i] == 1) << "number " << i << " is " << now;
    }
  }

 private:
  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  template <class Function>
  void for_each(const Access& one, const Function& function) {
    for (int64_t row = 0; row < one.rows; ++row)
      for (int64_t byte = 0; byte < one.row_bytes; byte += 4) {
        const char* at = static_cast<const char*>(one.data) + row * one.step_bytes + byte;
        const int64_t i = (at - reinterpret_cast<const char*>(data())) / 4;
        if (i >= 0 && i < watched_.numel()) function(i);
      }
  }
  Tensor numbers_, watched_, before_;
};

template <class... Args, class... Given>
void expect_declared(Watched& memory, void (*entry)(Args...), KernelWork (WorkOf::*declare)(Args...) const,
                     Given... arguments) {
  const KernelWork work = (WorkOf(cpu_kernels()).*declare)(arguments...);
  memory.allow(work);
  entry(arguments...);
  memory.expect_written(work);
}

TEST(KernelWork, OfProductsIsWhatTheyTouch) {
  constexpr int64_t kRows = 5, kColumns = 7, kDepth = 9, kStep = 12;
  for (const bool transposed : {false, true})
    for (const bool adds : {false, true}) {
      Watched memory(at::randn({400}));
      float* const x = memory.data();
      const MatmulOperand left = {x, Dtype::kFp32, transposed ? 1 : kStep, transposed ? kStep : 1};
      const MatmulOperand right = {x + 120, Dtype::kFp32, kStep, 1};
      const MatmulResult to = {x + 240, Dtype::kFp32, adds ? x + 300 : nullptr};
      expect_declared(memory, cpu_kernels().matmul, &WorkOf::matmul, MatmulShape{kRows, kColumns, kDepth},
                      left, right, to, Stream{});
      const KernelWork work = WorkOf(cpu_kernels()).matmul({kRows, kColumns, kDepth}, left, right, to, {});
      EXPECT_EQ(work.flops, 2 * kRows * kColumns * kDepth);
      EXPECT_EQ(work.bytes_read(), 4 * (kRows * kDepth + kColumns * kDepth + (adds ? kRows * kColumns : 0)));
      EXPECT_EQ(work.bytes_written(), 4 * kRows * kColumns);
    }
}

TEST(KernelWork, OfAttentionIsWhatItTouches) {
  const AttentionShape shape = {.batch = 2, .seq = 6, .heads = 4, .kv_heads = 2, .head_dim = 8};
  constexpr int64_t kRows = 12, kQ = 32, kKv = 32, kStep = 80;
  Watched memory(at::randn({kRows * 3 * kStep}));
  float *const x = memory.data(), *const out = x + kRows * kStep, *const more = out + kRows * kStep;
  const AttentionInputs in = {x, kStep, x + kQ, kStep};
  float* const sums = out + kRows * kQ;
  const ScoreRules rules = {.scale = 0.3f};
  expect_declared(memory, cpu_kernels().attention, &WorkOf::attention, shape, rules, Dtype::kFp32, in,
                  static_cast<void*>(out), sums, Stream{});
  const KernelWork forward = WorkOf(cpu_kernels()).attention(shape, rules, Dtype::kFp32, in, out, sums, {});
  EXPECT_EQ(forward.flops, 4 * 8 * 2 * 4 * 6 * 6 / 2.0);
  EXPECT_EQ(forward.bytes_read(), 4 * kRows * (kQ + kKv));
  EXPECT_EQ(forward.bytes_written(), 4 * (kRows * kQ + 2 * 4 * 6));
  const AttentionGradients to = {more, kStep, more + kQ, kStep};
  const KernelWork backward =
      WorkOf(cpu_kernels()).attention_backward(shape, rules, Dtype::kFp32, in, out, sums, out, to, {});
  EXPECT_EQ(backward.flops, 2.5 * forward.flops);
  memory.allow(backward);
  cpu_kernels().attention_backward(shape, rules, Dtype::kFp32, in, out, sums, out, to, {});
  memory.expect_written(backward);
}

TEST(KernelWork, OfInitialWeightsIsWhatTheyWrite) {
  Watched memory(at::randn({40}));
  expect_declared(memory, cpu_kernels().normal_numbers, &WorkOf::normal_numbers, int64_t{8}, uint64_t{1},
                  uint64_t{2}, 0.5, memory.data() + 4);
}

// Tokens cut into quarters count like the integral.
TEST(KernelWork, CountsPairsThatAttentionSees) {
  const std::vector<TokenSpan> spans = {{0, 0}, {0, 60}, {20, 40}, {40, 20}, {0, 20}, {10, 30}, {50, 7}};
  for (const TokenSpan& queries : spans)
    for (const TokenSpan& keys : spans)
      for (const int64_t window : {-1, 1, 5, 30, 100}) {
        constexpr int kFine = 4;
        double pairs = 0;
        for (int64_t q = 0; q < queries.count * kFine; ++q)
          for (int64_t k = 0; k < keys.count * kFine; ++k) {
            const double distance =
                static_cast<double>(queries.first - keys.first) + static_cast<double>(q - k) / kFine;
            const double limit = window < 0 ? 1e9 : static_cast<double>(window);
            pairs += distance > 0 && distance < limit ? 1 : distance == 0 || distance == limit ? 0.5 : 0;
          }
        pairs /= kFine * kFine;
        EXPECT_NEAR(seen_pairs(queries, keys, window), pairs, 0.02 * pairs + 0.5)
            << queries.first << "+" << queries.count << ", " << keys.first << "+" << keys.count << ", window "
            << window;
      }
}

}  // namespace
}  // namespace tycho
