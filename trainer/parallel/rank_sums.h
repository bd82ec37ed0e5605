// Sums of the same numbers of several ranks, always in the order of ranks. Torch-free.
#pragma once
#include <cstdint>

namespace tycho {

/// What can be summed.
enum class SumType : uint8_t { kFp32, kFp64, kBf16, kInt32, kInt64, kByte };

/// out[i] = rows[0][i] + rows[1][i] + …; bf16 is summed in fp32 and rounded once. `out` may be one of the
/// rows, and overlaps none otherwise. Integers wrap around.
void sum_rows(SumType type, void* out, const void* const* rows, int num_rows, int64_t count);

}  // namespace tycho
