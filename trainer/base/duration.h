// Lengths of training with their units: "10ba", "2e9tok", "0.5dur", "90m".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tycho {

/// ba optimizer steps (batches) · ep epochs · sp samples (sequences) · tok tokens · dur fraction of the whole
/// run · s seconds of wall time (m and h are read as s).
enum class DurationUnit { kBatch, kEpoch, kSample, kToken, kFraction, kSecond };

/// Returns "ba", "ep", "sp", "tok", "dur" or "s".
const char* unit_name(DurationUnit unit);

struct Duration {
  double value = 0;
  DurationUnit unit = DurationUnit::kBatch;

  /// Reads "100ba", "1.5e9tok", "90m". Throws Error (kRecipe) that lists the units when the text has none.
  static Duration parse(std::string_view text);
  /// Returns the shortest text that reads back as the same value: "4800ba"; "2e9tok" prints as
  /// "2000000000tok".
  std::string str() const;

  bool operator==(const Duration&) const = default;
  /// Returns the value as a whole number. Throws Error (kRecipe) when it is not one.
  int64_t count() const;
};

/// A duration, or "auto" for one that Tycho chooses.
struct DurationOrAuto : Duration {
  static constexpr const char* kAuto = "auto";
  bool is_auto = false;

  DurationOrAuto() = default;
  DurationOrAuto(const Duration& given) : Duration(given) {}  // NOLINT: a duration is one
  std::string str() const { return is_auto ? kAuto : Duration::str(); }
  bool operator==(const DurationOrAuto&) const = default;
};

}  // namespace tycho
