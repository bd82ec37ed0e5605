// The rates that bound a step on this CPU: its multiply-add instructions, and its memory.
#pragma once
#include <cstdint>
#include <string_view>

namespace tycho {

struct PeakFlops {
  const char* instruction;  // "vfmadd231ps zmm"
  double per_second;        // of all threads together
};

/// Returns the best of some rounds of a loop of nothing but the instruction that a table ("cpu avx2") uses
/// for products of fp32, or of bf16. Each thread is pinned to a CPU, all begin together, and each counts its
/// own time, at least 100 ms a round. Returns {"", 0} for a table that no loop is written for.
PeakFlops peak_flops(std::string_view table, bool bf16, int num_threads);

/// Returns bytes per second, read and written, of a copy of 256 MiB on LibTorch's threads: the median of
/// some rounds.
double streaming_rate();

/// Returns bytes per second of threads that read 256 MiB together and add it up: the best of some rounds.
double reading_rate(int num_threads);

}  // namespace tycho
