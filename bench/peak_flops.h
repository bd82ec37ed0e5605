// What a loop of nothing but multiply-add instructions reaches on this CPU: the bound of every product.
#pragma once
#include <cstdint>
#include <string_view>

namespace tycho {

struct PeakFlops {
  const char* instruction;  // "vfmadd231ps zmm"
  double per_second;        // of all threads together
};

/// The best of some rounds on so many threads at once, for the instructions that a table ("cpu avx2") uses
/// for products of fp32, or of bf16. {"", 0} for a table that no loop is written for.
PeakFlops peak_flops(std::string_view table, bool bf16, int num_threads);

}  // namespace tycho
