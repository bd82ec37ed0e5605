// The arithmetic is NumPy's, step by step: a ratio decides how many examples a batch has.
#include "trainer/data/chat/packing_ratio.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "trainer/data/chat/batch_packer.h"

namespace tycho {
namespace {

constexpr int kRatios = 20;
constexpr int64_t kProfiledBatches = 100;
constexpr int64_t kTokensPerExample = 100;  // the largest ratio leaves this many for each example

/// Returns np.round(10 * np.linspace(1, most, 20)) / 10, without ratios that give a batch as many examples as
/// the ratio before.
std::vector<double> candidates(const PackingGroup& group) {
  const double most = static_cast<double>(group.row_tokens) / static_cast<double>(kTokensPerExample);
  const double step = (most - 1) / (kRatios - 1);
  std::vector<double> ratios;
  for (int i = 0; i < kRatios; ++i) {
    const volatile double product = i * step;  // rounded before 1 is added, as NumPy does
    const double exact = i + 1 == kRatios ? most : product + 1;
    const double ratio = std::nearbyint(10 * exact) / 10;
    if (ratios.empty() ||
        examples_per_batch(ratio, group.num_rows) != examples_per_batch(ratios.back(), group.num_rows))
      ratios.push_back(ratio);
  }
  return ratios;
}

/// True if no example waits after all are packed. False when there are too few examples for a batch.
bool leaves_nothing(std::span<const int32_t> lengths, const PackingGroup& group, int64_t batch) {
  std::vector<uint32_t> examples(lengths.size());
  std::iota(examples.begin(), examples.end(), 0u);
  BatchPacker packer(group.num_rows, group.row_tokens);
  const auto count = std::ssize(lengths);
  for (int64_t begin = 0; begin < count; begin += batch) {
    const int64_t size = std::min(batch, count - begin);
    if (size >= group.num_rows)
      packer.pack(std::span(examples).subspan(static_cast<size_t>(begin), static_cast<size_t>(size)),
                  lengths);
  }
  return count >= group.num_rows && packer.waiting_tokens() == 0;
}

}  // namespace

int64_t examples_per_batch(double ratio, int64_t num_rows) {
  return static_cast<int64_t>(ratio * static_cast<double>(num_rows));
}

double find_packing_ratio(std::span<const int32_t> lengths, const PackingGroup& group) {
  if (group.row_tokens <= kTokensPerExample) return 1;
  const std::vector<double> ratios = candidates(group);
  const int64_t profiled = examples_per_batch(ratios.back(), group.num_rows) * kProfiledBatches;
  lengths = lengths.first(static_cast<size_t>(std::min<int64_t>(std::ssize(lengths), profiled)));
  double found = 1;
  for (const double ratio : ratios) {
    if (!leaves_nothing(lengths, group, examples_per_batch(ratio, group.num_rows))) break;
    found = ratio;
  }
  return found;
}

}  // namespace tycho
