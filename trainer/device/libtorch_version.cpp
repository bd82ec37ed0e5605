// Asks LibTorch itself: TORCH_VERSION is only that of the headers.
#include "trainer/device/libtorch_version.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>

// Weak, because releases before 2.9 do not have it.
extern "C" __attribute__((weak)) uint64_t aoti_torch_abi_version();

namespace tycho {
namespace {

// cmake/LibTorch.cmake and scripts/setup ask for the same.
constexpr int kLeastMajor = 2, kLeastMinor = 11;

}  // namespace

std::string libtorch_version() {
  if (aoti_torch_abi_version == nullptr) return "2.8 or older";
  const uint64_t version = aoti_torch_abi_version();  // a byte each from the top: major, minor, patch
  return fmt::format("{}.{}.{}", version >> 56 & 0xff, version >> 48 & 0xff, version >> 40 & 0xff);
}

std::string libtorch_problem(const std::string& version) {
  int major = 0, minor = 0;
  const bool known = std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2;
  if (known && (major > kLeastMajor || (major == kLeastMajor && minor >= kLeastMinor))) return "";
  return fmt::format(
      "expected LibTorch {}.{} or newer, got {}: older ones refuse to add products of bf16 to sums in fp32. "
      "Run scripts/setup, or set TYCHO_TORCH to a newer one; then build again. If LD_LIBRARY_PATH names a "
      "LibTorch, take it out",
      kLeastMajor, kLeastMinor, version);
}

}  // namespace tycho
