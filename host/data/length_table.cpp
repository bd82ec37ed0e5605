// Bins of powers of two: lengths of texts differ by factors.
#include "host/data/length_table.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tycho {
namespace {

/// Counts the lengths from each power of two up to the next: {1, 2-3, 4-7, ...}.
std::vector<std::pair<int64_t, int64_t>> by_powers_of_two(const LengthCounts& lengths) {
  std::vector<std::pair<int64_t, int64_t>> bins;
  for (const auto& [length, count] : lengths.counts) {
    const auto from =
        static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(length, 1))));
    if (bins.empty() || bins.back().first != from) bins.emplace_back(from, 0);
    bins.back().second += count;
  }
  return bins;
}

}  // namespace

Json lengths_json(const LengthCounts& lengths) {
  Json bins = Json::array();
  for (const auto& [from, count] : by_powers_of_two(lengths))
    bins.push_back({{"from", from}, {"count", count}});
  return {{"count", lengths.number()},    {"min", lengths.quantile(0)},    {"median", lengths.quantile(0.5)},
          {"p90", lengths.quantile(0.9)}, {"p99", lengths.quantile(0.99)}, {"max", lengths.quantile(1)},
          {"histogram", std::move(bins)}};
}

void print_lengths(const char* what, const char* unit, const LengthCounts& lengths) {
  fmt::print("{}: {}, {} each: shortest {}, median {}, 90 % up to {}, 99 % up to {}, longest {}\n", what,
             lengths.number(), unit, lengths.quantile(0), lengths.quantile(0.5), lengths.quantile(0.9),
             lengths.quantile(0.99), lengths.quantile(1));
  const auto bins = by_powers_of_two(lengths);
  if (bins.size() < 2) return;
  int64_t most = 1;
  for (const auto& [from, count] : bins) most = std::max(most, count);
  for (const auto& [from, count] : bins)
    fmt::print("  {:>9} to {:<9} {:>12}  {}\n", from, 2 * from - 1, count,
               std::string(static_cast<size_t>((40 * count + most - 1) / most), '#'));
}

}  // namespace tycho
