// Checks of the fused classifier.
#include "trainer/kernels/cross_entropy.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

void check_targets(const Tensor& targets_N, int64_t vocab) {
  if (!targets_N.is_cpu()) return;  // the loader has checked them; reading them here would wait for the GPU
  const int32_t* targets = targets_N.const_data_ptr<int32_t>();
  for (int64_t n = 0; n < targets_N.numel(); ++n)
    TYCHO_CHECK((targets[n] >= 0 && targets[n] < vocab) || targets[n] == kIgnoredTarget,
                "[cross_entropy] target {} at position {} is neither in the vocabulary of {} nor {} "
                "(ignored). Was the data made with a different tokenizer?",
                targets[n], n, vocab, kIgnoredTarget);
}

}  // namespace

void check_count(const char* op, const LogitRules& rules, int64_t dim) {
  TYCHO_CHECK(rules.count >= 0 && rules.count <= dim,
              "[{}] expected at most the {} elements of a row, got {} logits", op, dim, rules.count);
}

void cross_entropy(const LogitRules& rules, Tensor& logits_NV, const Tensor& targets_N,
                   const Tensor& weight_1, bool write_gradient, Tensor& losses_N) {
  const Range range("tycho::cross_entropy");
  const char* op = "cross_entropy";
  TYCHO_CHECK(rules.softcap >= 0, "[cross_entropy] expected a soft cap above 0, or 0 for none, got {}",
              rules.softcap);
  const RowsShape shape = rows_of(op, "logits", logits_NV);
  check_count(op, rules, shape.dim);
  const auto device = logits_NV.device();
  check_tensor(op, "logits", logits_NV, {shape.rows, shape.dim}, logits_NV.scalar_type(), device);
  check_tensor(op, "targets", targets_N, {shape.rows}, at::kInt, device);
  check_tensor(op, "losses", losses_N, {shape.rows}, at::kFloat, device);
  if (write_gradient) check_tensor(op, "weight", weight_1, {1}, at::kFloat, device);
  check_targets(targets_N, rules.count_of(shape.dim));
  kernels(logits_NV).cross_entropy(shape, dtype_of(op, logits_NV), rules, logits_NV.mutable_data_ptr(),
                                   targets_N.const_data_ptr<int32_t>(),
                                   write_gradient ? weight_1.const_data_ptr<float>() : nullptr,
                                   write_gradient, losses_N.mutable_data_ptr<float>(), stream_of(logits_NV));
}

}  // namespace tycho
