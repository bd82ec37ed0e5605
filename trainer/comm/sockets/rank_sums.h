// Sums of equal arrays of several ranks, in a fixed order. Torch-free.
#pragma once
#include <cstdint>

namespace tycho {

/// Types of numbers that can be summed.
enum class SumType : uint8_t { kFp32, kFp64, kBf16, kInt32, kInt64, kByte };

/// Order in which rows are added: one after the other, or as the leaves of a tree (layout/sum_tree.h): the
/// first half, the second half, and both together, down to an odd number of rows. kAny lets GPUs add in any
/// order, the fastest one; on CPUs it is kRanks.
enum class SumOrder : uint8_t { kRanks, kTree, kAny };

/// Computes out[i] = rows[0][i] + rows[1][i] + …; bf16 is summed in fp32 and rounded once. `out` may be one
/// of the rows, and otherwise must not overlap them. Integers wrap around.
void sum_rows(SumType type, void* out, const void* const* rows, int num_rows, int64_t count,
              SumOrder order = SumOrder::kRanks);

}  // namespace tycho
