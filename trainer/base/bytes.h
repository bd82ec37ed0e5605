// Sizes of memory and files with their units: "64MiB", "1.5GB".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tycho {

struct Bytes {
  int64_t value = 0;
  /// Reads "64MiB", "1.5GB", "4096" (bytes). KB MB GB TB are powers of 1000, KiB MiB GiB TiB of 1024.
  static Bytes parse(std::string_view text);
  /// Returns the shortest exact text: "64MiB", "1000B".
  std::string str() const;
  bool operator==(const Bytes&) const = default;
};

/// Returns a text for display: "1.50 GB", three significant digits, powers of 1000.
std::string human_bytes(double bytes);
/// Returns a text for display: "124.4 M", "2.52 B", "980".
std::string human_count(double count);

}  // namespace tycho
