// Normal numbers by counter, one counter at a time.
#include "trainer/base/random/normal_numbers.h"

#include <cmath>
#include <numbers>

#include "trainer/base/random/philox.h"

namespace tycho {

// Done in double: the last bit then does not depend on which vector unit the compiler found.
void four_normals(uint64_t key, uint64_t counter, double std, float out[4]) {
  const auto words = philox(key, counter);
  for (int pair = 0; pair < 2; ++pair) {
    const double u = (static_cast<double>(words[static_cast<size_t>(2 * pair)]) + 1.0) * 0x1p-32;  // (0, 1]
    const double angle =
        2.0 * std::numbers::pi * static_cast<double>(words[static_cast<size_t>(2 * pair + 1)]) * 0x1p-32;
    const double radius = std * std::sqrt(-2.0 * std::log(u));
    out[2 * pair] = static_cast<float>(radius * std::cos(angle));
    out[2 * pair + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

}  // namespace tycho
