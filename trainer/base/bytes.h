// Sizes of memory and files with their units: "64MiB", "1.5GB".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tycho {

/// A number of bytes.
struct Bytes {
  int64_t value = 0;
  /// Reads "64MiB", "1.5GB", "4096" (bytes). KB MB GB TB are powers of 1000, KiB MiB GiB TiB of 1024.
  static Bytes parse(std::string_view text);
  /// Shortest exact text: "64MiB", "1000B".
  std::string str() const;
  bool operator==(const Bytes&) const = default;
};

/// For people: "1.50 GB", three significant digits, powers of 1000.
std::string human_bytes(double bytes);
/// For people: "124.4 M", "2.52 B", "980".
std::string human_count(double count);

}  // namespace tycho
