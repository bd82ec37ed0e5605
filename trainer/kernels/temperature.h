// Temperature tuning of attention: scales queries by a factor that grows with their position.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/row_positions.h"

namespace tycho {

/// Multiplies row r of x_NE, in place, by 1 + attn_scale ln(floor((p + counts_from) / floor_scale) + 1) for
/// its position p, counted from 0 (Llama 4; Nakanishi 2025, arXiv:2501.19399). fp32 or bf16; rows need not be
/// contiguous. `position_N`, int32 [N], holds the rows' positions; if it is undefined, row r has
/// first_position + r % seq. The gradient is the same product.
void temperature(TemperatureRule rule, int64_t seq, int64_t first_position, const Tensor& position_N,
                 Tensor& x_NE);

}  // namespace tycho
