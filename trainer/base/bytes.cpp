// Reads and prints sizes with their units.
#include "trainer/base/bytes.h"

#include <array>
#include <charconv>
#include <cmath>

#include "trainer/base/error.h"

namespace tycho {
namespace {

struct ByteUnit {
  const char* name;
  double bytes;
};
constexpr std::array<ByteUnit, 9> kByteUnits = {{{"B", 1},
                                                 {"KB", 1e3},
                                                 {"MB", 1e6},
                                                 {"GB", 1e9},
                                                 {"TB", 1e12},
                                                 {"KiB", 0x1p10},
                                                 {"MiB", 0x1p20},
                                                 {"GiB", 0x1p30},
                                                 {"TiB", 0x1p40}}};

double bytes_of_unit(std::string_view name, std::string_view text) {
  if (name.empty()) return 1;
  for (const ByteUnit& unit : kByteUnits) {
    if (name == unit.name) return unit.bytes;
  }
  fail(ExitCode::kRecipe,
       "[bytes] expected a size with a unit out of B KB MB GB TB KiB MiB GiB TiB, such as \"64MiB\", got "
       "\"{}\"",
       text);
}

/// Returns `value` divided by the power of 1000 at which it prints below 1000, with the suffix of that power.
/// `decimals_of(x)` is the number of digits that x prints with: 999.96 M rounds to 1000.0 and therefore
/// prints as 1.00 B.
template <class Decimals>
std::string scaled_text(double value, const std::array<const char*, 5>& suffixes, Decimals decimals_of) {
  size_t power = 0;
  const auto prints_as_1000 = [&](double x) {
    return std::abs(x) >= 1000 - 0.5 * std::pow(10.0, -decimals_of(x));
  };
  while (prints_as_1000(value) && power + 1 < suffixes.size()) {
    value /= 1000;
    ++power;
  }
  const bool whole = power == 0 && value == std::round(value);
  return fmt::format("{:.{}f}{}", value, whole ? 0 : decimals_of(value), suffixes[power]);
}

}  // namespace

Bytes Bytes::parse(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) {
    fail(ExitCode::kRecipe, "[bytes] expected a size such as \"64MiB\" or \"4096\", got \"{}\"", text);
  }
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const double bytes = number * bytes_of_unit(unit, text);
  const double whole = std::round(bytes);
  // 1.1TB is not exact in binary: a whole number up to rounding is what was meant.
  if (bytes > 0x1p53 || std::abs(bytes - whole) > bytes * 1e-15) {
    fail(ExitCode::kRecipe, "[bytes] expected a whole number of bytes up to 8192TiB, got \"{}\"", text);
  }
  return {static_cast<int64_t>(whole)};
}

std::string Bytes::str() const {
  static constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  int64_t number = value;
  size_t power = 0;
  while (number != 0 && number % 1024 == 0 && power + 1 < kNames.size()) {
    number /= 1024;
    ++power;
  }
  return fmt::format("{}{}", number, kNames[power]);
}

std::string human_bytes(double bytes) {
  return scaled_text(bytes, {" B", " KB", " MB", " GB", " TB"}, [](double x) {
    return std::abs(x) < 9.995 ? 2 : std::abs(x) < 99.95 ? 1 : 0;
  });
}

std::string human_count(double count) {
  return scaled_text(count, {"", " K", " M", " B", " T"},
                     [](double x) { return std::abs(x) < 9.995 ? 2 : 1; });
}

}  // namespace tycho
