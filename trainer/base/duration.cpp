// Reads and prints lengths of training.
#include "trainer/base/duration.h"

#include <array>
#include <charconv>
#include <cmath>

#include "trainer/base/error.h"

namespace tycho {
namespace {

struct UnitName {
  const char* name;
  DurationUnit unit;
  double factor;
};
constexpr std::array<UnitName, 8> kUnitNames = {{{"ba", DurationUnit::kBatch, 1},
                                                 {"ep", DurationUnit::kEpoch, 1},
                                                 {"sp", DurationUnit::kSample, 1},
                                                 {"tok", DurationUnit::kToken, 1},
                                                 {"dur", DurationUnit::kFraction, 1},
                                                 {"s", DurationUnit::kSecond, 1},
                                                 {"m", DurationUnit::kSecond, 60},
                                                 {"h", DurationUnit::kSecond, 3600}}};

bool is_exact_integer(double x) { return x == std::floor(x) && std::abs(x) <= 0x1p53; }

}  // namespace

const char* unit_name(DurationUnit unit) {
  for (const UnitName& known : kUnitNames) {
    if (known.unit == unit) return known.name;
  }
  return "?";
}

Duration Duration::parse(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) {
    fail(ExitCode::kRecipe,
         "[duration] expected a number and a unit, such as \"100ba\" or \"2e9tok\", got \"{}\"", text);
  }
  std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const UnitName& unit : kUnitNames) {
    if (name == unit.name) return {number * unit.factor, unit.unit};
  }
  fail(ExitCode::kRecipe,
       "[duration] expected a unit: ba (steps), ep (epochs), sp (samples), tok (tokens), dur (share of the "
       "run), s, m or h; got \"{}\"",
       text);
}

std::string Duration::str() const {
  if (is_exact_integer(value)) return fmt::format("{}{}", static_cast<int64_t>(value), unit_name(unit));
  return fmt::format("{}{}", value, unit_name(unit));
}

int64_t Duration::count() const {
  if (!is_exact_integer(value)) {
    fail(ExitCode::kRecipe, "[duration] expected a whole number of {}, got {}", unit_name(unit), str());
  }
  return static_cast<int64_t>(value);
}

}  // namespace tycho
