// Makes 128 random bits as text: a name that no other checkpoint has.
#include "trainer/checkpoint/uuid.h"

#include <fmt/format.h>

#include <random>

namespace tycho {

std::string new_uuid() {
  std::random_device random;
  std::string uuid;
  for (int i = 0; i < 4; ++i) uuid += fmt::format("{:08x}", static_cast<uint32_t>(random()));
  return uuid;
}

}  // namespace tycho
