// Checks of the statistics of logits and of their gradient.
#include "trainer/kernels/token_statistics.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

RowsShape checked_rows(const char* op, const LogitRules& rules, const Tensor& logits_NV,
                       const Tensor& targets_N, const Tensor& statistics_SN) {
  TYCHO_CHECK(rules.softcap >= 0, "[{}] expected a soft cap above 0, or 0 for none, got {}", op,
              rules.softcap);
  const RowsShape shape = rows_of(op, "logits", logits_NV);
  check_count(op, rules, shape.dim);
  const auto device = logits_NV.device();
  check_tensor(op, "logits", logits_NV, {shape.rows, shape.dim}, logits_NV.scalar_type(), device);
  check_tensor(op, "targets", targets_N, {shape.rows}, at::kInt, device);
  check_tensor(op, "statistics", statistics_SN, {kTokenStatistics, shape.rows}, at::kFloat, device);
  return shape;
}

/// Checks targets on the CPU; reading those of a GPU would wait for it, and the loader has checked them.
void check_targets(const char* op, const Tensor& targets_N, int64_t vocab) {
  if (!targets_N.is_cpu()) return;
  const int32_t* targets = targets_N.const_data_ptr<int32_t>();
  for (int64_t n = 0; n < targets_N.numel(); ++n)
    TYCHO_CHECK((targets[n] >= 0 && targets[n] < vocab) || targets[n] == kIgnoredTarget ||
                    targets[n] == kTargetElsewhere,
                "[{}] target {} at position {} is neither in the vocabulary of {} nor {} (ignored). Was the "
                "data made with a different tokenizer?",
                op, targets[n], n, vocab, kIgnoredTarget);
}

}  // namespace

void token_statistics(const LogitRules& rules, const Tensor& logits_NV, const Tensor& targets_N,
                      Tensor& statistics_SN) {
  const Range range("tycho::token_statistics");
  const char* op = "token_statistics";
  const RowsShape shape = checked_rows(op, rules, logits_NV, targets_N, statistics_SN);
  check_targets(op, targets_N, rules.count_of(shape.dim));
  kernels(logits_NV).token_statistics(shape, dtype_of(op, logits_NV), rules, logits_NV.const_data_ptr(),
                                      targets_N.const_data_ptr<int32_t>(),
                                      statistics_SN.mutable_data_ptr<float>(), stream_of(logits_NV));
}

void token_statistics_backward(const LogitRules& rules, int64_t vocab, Tensor& logits_NV,
                               const Tensor& targets_N, const Tensor& statistics_SN,
                               const Tensor& gradients_5N, const Tensor& weight_1) {
  const Range range("tycho::token_statistics_backward");
  const char* op = "token_statistics_backward";
  const RowsShape shape = checked_rows(op, rules, logits_NV, targets_N, statistics_SN);
  const auto device = logits_NV.device();
  const int64_t count = rules.count_of(shape.dim);
  TYCHO_CHECK(vocab >= count, "[{}] expected a vocabulary of at least the {} logits of a row, got {}", op,
              count, vocab);
  check_tensor(op, "gradients", gradients_5N, {kLossStatistics, shape.rows}, at::kFloat, device);
  check_tensor(op, "weight", weight_1, {1}, at::kFloat, device);
  check_targets(op, targets_N, count);
  kernels(logits_NV).token_statistics_backward(
      shape, dtype_of(op, logits_NV), rules, vocab, logits_NV.mutable_data_ptr(),
      targets_N.const_data_ptr<int32_t>(), statistics_SN.const_data_ptr<float>(),
      gradients_5N.const_data_ptr<float>(), weight_1.const_data_ptr<float>(), stream_of(logits_NV));
}

}  // namespace tycho
