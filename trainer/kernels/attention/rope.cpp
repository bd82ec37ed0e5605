// The table of rotations, and the checks of applying it.
#include "trainer/kernels/attention/rope.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

/// Returns a table of rotations. factor(position, pair) scales each rotation, beside the attention factor.
template <class Factor>
Tensor rope_table(int64_t num_positions, const RopeFrequencies& frequencies, const Factor& factor) {
  TYCHO_CHECK(num_positions > 0, "[rope] expected positions > 0, got {}", num_positions);
  const auto half = static_cast<int64_t>(frequencies.radians.size());
  Tensor table = at::empty({num_positions, 2, half}, at::kFloat);
  float* out = table.mutable_data_ptr<float>();
  for (int64_t position = 0; position < num_positions; ++position)
    for (int64_t j = 0; j < half; ++j) {
      const double angle = static_cast<double>(position) * frequencies.radians[static_cast<size_t>(j)];
      const double scale = frequencies.attention_factor * factor(position, j);
      out[(2 * position) * half + j] = static_cast<float>(std::cos(angle) * scale);
      out[(2 * position + 1) * half + j] = static_cast<float>(std::sin(angle) * scale);
    }
  return table;
}

}  // namespace

Tensor rope_table(int64_t num_positions, const RopeFrequencies& frequencies) {
  return rope_table(num_positions, frequencies, [](int64_t, int64_t) { return 1.0; });
}

RopeTables xpos_tables(int64_t num_positions, const RopeFrequencies& frequencies, double scale_base) {
  TYCHO_CHECK(scale_base > 0, "[rope] expected a scale base > 0, got {}", scale_base);
  const auto half = static_cast<double>(frequencies.radians.size());
  const auto scale = [&](int64_t position, int64_t j, double sign) {
    const double power = static_cast<double>(position - num_positions / 2) / scale_base;
    return std::pow((static_cast<double>(j) / half + 0.4) / 1.4, sign * power);
  };
  const auto with = [&](double sign) {
    return rope_table(num_positions, frequencies,
                      [&](int64_t position, int64_t j) { return scale(position, j, sign); });
  };
  return {with(1), with(-1)};
}

void rope(Tensor& qkv_NC, const Tensor& cos_sin, int64_t seq, int64_t first_position, HeadRange heads,
          int64_t head_dim, bool inverse) {
  const Range range("tycho::rope");
  const RowsShape rows = rows_of("rope", "qkv", qkv_NC);
  check_tensor("rope", "qkv", qkv_NC, {rows.rows, rows.dim}, qkv_NC.scalar_type(), qkv_NC.device());
  TYCHO_CHECK(cos_sin.dim() == 3, "[rope] cos_sin: expected the table of rope_table, got {} dims",
              cos_sin.dim());
  const int64_t half = cos_sin.size(2);
  check_tensor("rope", "cos_sin", cos_sin, {cos_sin.size(0), 2, half}, at::kFloat, qkv_NC.device());
  TYCHO_CHECK(half > 0 && 2 * half <= head_dim,
              "[rope] cos_sin: expected 1 to {} pairs, which heads of {} have, got {}", head_dim / 2,
              head_dim, half);
  TYCHO_CHECK(heads.first >= 0 && heads.count >= 0 && (heads.first + heads.count) * head_dim <= rows.dim,
              "[rope] {} heads of {} from head {} on do not fit rows of {}", heads.count, head_dim,
              heads.first, rows.dim);
  TYCHO_CHECK(seq > 0 && first_position >= 0 && first_position + seq <= cos_sin.size(0),
              "[rope] positions {}..{} are outside the table of {}", first_position, first_position + seq - 1,
              cos_sin.size(0));
  const RopeShape shape{rows.rows, seq, first_position, rows.dim, heads.count, head_dim, 2 * half};
  Tensor from_first = qkv_NC.narrow(1, heads.first * head_dim, heads.count * head_dim);
  kernels(qkv_NC).rope(shape, dtype_of("rope", qkv_NC), cos_sin.const_data_ptr<float>(), inverse,
                       from_first.mutable_data_ptr(), stream_of(qkv_NC));
}

}  // namespace tycho
