// Positions of a batch's rows, and the ops that depend on them: rotations and temperatures.
#pragma once
#include <cstdint>

namespace tycho {

struct RopeShape {
  int64_t rows = 0;  // N = B*T tokens
  int64_t seq = 0;   // T: row r has position first_position + r % seq
  int64_t first_position = 0;
  int64_t row_width = 0;      // elements between rows: (H + 2K) * d
  int64_t rotated_heads = 0;  // leading heads of a row to rotate: H + K
  int64_t head_dim = 0;       // d
  int64_t rotary_dim = 0;     // leading elements of a head to rotate; the table's row has as many
};

/// Row r has position position_N[r], or, if it is null, first_position + r % seq.
struct RowPositions {
  int64_t seq = 1, first_position = 0;
  const int32_t* position_N = nullptr;
};

/// Factors of queries: 1 + attn_scale ln(floor((position + counts_from) / floor_scale) + 1).
struct TemperatureRule {
  float attn_scale = 0.0f, floor_scale = 8192.0f;
  int64_t counts_from = 1;  // number of a sequence's first token: 1 in Llama 4, 0 in Ministral 3
};

}  // namespace tycho
