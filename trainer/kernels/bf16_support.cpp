// Whether a device multiplies bf16 natively.
#include <fmt/format.h>

#include "trainer/kernels/matmul.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tycho {
namespace {

bool cpu_has_bf16_units() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAvx512Bf16 = 1u << 5, kAmxBf16 = 1u << 22;
  if (!__builtin_cpu_supports("x86-64-v4")) return false;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kAvx512Bf16)) return true;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kAmxBf16);
#else
  return false;
#endif
}

}  // namespace

bool bf16_is_native(const at::Device& device) {
  static const bool cpu = cpu_has_bf16_units();
  return device.is_cpu() ? cpu : true;
}

std::string matmul_route(const at::Device& device, at::ScalarType dtype) {
  if (dtype == at::kFloat) return "fp32";
  return bf16_is_native(device) ? "bf16" : "bf16 through fp32 (this CPU has no bf16 units: fp32 is as fast)";
}

}  // namespace tycho
