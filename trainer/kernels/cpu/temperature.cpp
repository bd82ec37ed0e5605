// Temperature tuning on the CPU.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

float factor(TemperatureRule rule, RowPositions positions, int64_t row) {
  const int64_t position =
      positions.position_N ? positions.position_N[row] : positions.first_position + row % positions.seq;
  const float steps = __builtin_floorf(static_cast<float>(position + rule.counts_from) / rule.floor_scale);
  return 1.0f + rule.attn_scale * __builtin_logf(steps + 1.0f);
}

template <class T>
void scale(RowsShape rows, int64_t step, TemperatureRule rule, RowPositions positions, T* x) {
  for_row_blocks(rows.rows, rows.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const Vec by = broadcast(factor(rule, positions, row));
      T* at = x + row * step;
      for_lanes(rows.dim, [&](int64_t i, auto lanes) { store(at + i, load(at + i, lanes) * by, lanes); });
    }
  });
}

}  // namespace

void temperature(RowsShape rows, int64_t step, Dtype dtype, TemperatureRule rule, RowPositions positions,
                 void* x, Stream) {
  if (dtype == Dtype::kFp32)
    scale(rows, step, rule, positions, static_cast<float*>(x));
  else
    scale(rows, step, rule, positions, static_cast<Bf16*>(x));
}

}  // namespace tycho::TYCHO_ISA
