// Ranges are short, so that one that breaks is quickly sent again.
#include "trainer/buckets/ranged_bucket.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/in_parallel.h"

namespace tycho {
namespace {

constexpr size_t kRangeBytes = size_t{8} << 20;
constexpr size_t kNumConnections = 4;

}  // namespace

std::optional<std::string> RangedBucket::first_bytes(const std::string& name, size_t most,
                                                     const std::stop_token& stop) {
  check_object_name(name, place_of(""));
  std::string bytes;
  while (bytes.size() < most) {
    const size_t count = std::min(kRangeBytes, most - bytes.size());
    const std::optional<std::string> more = range(name, static_cast<int64_t>(bytes.size()), count, stop);
    if (!more && bytes.empty()) return std::nullopt;
    bytes += more.value_or("");
    if (!more || more->size() < count) break;
  }
  return bytes;
}

std::optional<std::string> RangedBucket::get(const std::string& name, int64_t most_bytes,
                                             const std::stop_token& stop) {
  std::optional<std::string> bytes = first_bytes(name, static_cast<size_t>(most_bytes) + 1, stop);
  if (bytes && std::cmp_greater(bytes->size(), most_bytes))
    fail(ExitCode::kUnusable, "[bucket] {}: expected at most {} bytes, got more", place_of(name), most_bytes);
  return bytes;
}

void RangedBucket::read(const std::string& name, int64_t offset, std::span<char> out,
                        const std::stop_token& stop) {
  check_object_name(name, place_of(""));
  const size_t num_ranges = (out.size() + kRangeBytes - 1) / kRangeBytes;
  in_parallel(num_ranges, kNumConnections, stop, [&](size_t number, const std::stop_token& ended) {
    const size_t begin = number * kRangeBytes;
    const size_t count = std::min(kRangeBytes, out.size() - begin);
    const int64_t at = offset + static_cast<int64_t>(begin);
    const std::string bytes = range(name, at, count, ended).value_or("");
    if (bytes.size() < count)
      fail(ExitCode::kUnusable, "[bucket] {}: expected {} bytes from byte {} on, got {}", place_of(name),
           out.size(), offset, begin + bytes.size());
    std::copy(bytes.begin(), bytes.end(), out.data() + begin);
  });
}

}  // namespace tycho
