// Checks of temperature tuning.
#include "trainer/kernels/temperature.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void temperature(TemperatureRule rule, int64_t seq, int64_t first_position, const Tensor& position_N,
                 Tensor& x_NE) {
  const Range range("tycho::temperature");
  const char* op = "temperature";
  TYCHO_CHECK(rule.floor_scale > 0, "[{}] expected a floor_scale above 0, got {}", op, rule.floor_scale);
  TYCHO_CHECK(rule.counts_from == 0 || rule.counts_from == 1, "[{}] expected counts_from 0 or 1, got {}", op,
              rule.counts_from);
  const RowsShape rows = rows_of(op, "x", x_NE);
  const int64_t step = row_step(op, "x", x_NE, {rows.rows, rows.dim}, x_NE.scalar_type(), x_NE.device());
  RowPositions positions{seq, first_position};
  if (position_N.defined()) {
    check_tensor(op, "positions", position_N, {rows.rows}, at::kInt, x_NE.device());
    positions.position_N = position_N.const_data_ptr<int32_t>();
  } else {
    TYCHO_CHECK(
        seq > 0 && first_position >= 0,
        "[{}] expected sequences of 1 or more tokens from a position that is not negative, got {} from {}",
        op, seq, first_position);
  }
  kernels(x_NE).temperature(rows, step, dtype_of(op, x_NE), rule, positions, x_NE.mutable_data_ptr(),
                            stream_of(x_NE));
}

}  // namespace tycho
