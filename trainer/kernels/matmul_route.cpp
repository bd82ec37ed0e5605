// Chooses the library and the units that multiply matrices on this machine.
#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/tuned_products.h"
#include "trainer/kernels/twins/library_products.h"

namespace tycho {
namespace {

const LibraryProducts* products_of_gpu = nullptr;

/// Returns the choice of TYCHO_GEMM; nothing when it is not set.
std::optional<bool> wanted_ours() {
  const std::string wanted = environment_variable("TYCHO_GEMM");
  if (wanted.empty()) return std::nullopt;
  if (wanted == "own") return true;
  if (wanted == "aten") return false;
  fail(ExitCode::kUsage, "[kernels] TYCHO_GEMM expected own or aten, got '{}'. Unset it to let Tycho choose",
       wanted);
}

/// True if the CPU has our tiled kernels. The generic table's fp32 product has none; elsewhere ours was
/// faster wherever both were measured (bench/results/matmul.md).
bool cpu_has_tiles() { return cpu_kernels_for("avx2") != nullptr; }

/// Returns "avx2" for "cpu avx2".
std::string_view instruction_set() { return std::string_view(cpu_kernels().name).substr(4); }

}  // namespace

void set_library_products(const LibraryProducts* products) { products_of_gpu = products; }
const LibraryProducts* library_products() { return products_of_gpu; }

bool fp32_is_ours() {
  static const bool ours = wanted_ours().value_or(cpu_has_tiles());
  return ours;
}

bool bf16_is_ours() {
  static const bool ours = wanted_ours().value_or(true);
  return ours;
}

bool bf16_is_native(const at::Device& device) {
  return !device.is_cpu() || instruction_set().find("bf16") != std::string_view::npos;
}

bool gpu_library_multiplies() {
  static const bool multiplies =
      wanted_ours().value_or(true) && library_products() && *library_products()->name() != '\0';
  return multiplies;
}

std::string matmul_route(const at::Device& device, at::ScalarType dtype) {
  const bool is_fp32 = dtype == at::kFloat;
  const char* name = is_fp32 ? "fp32" : "bf16";
  if (!device.is_cpu() && gpu_library_multiplies())
    return fmt::format("{} by {}{}", name, library_products()->name(), tuning_note());
  if (!device.is_cpu() || !(is_fp32 ? fp32_is_ours() : bf16_is_ours()))
    return fmt::format("{} by ATen", name);
  const char* note = is_fp32 || bf16_is_native(device) ? "" : ", multiplied in fp32";
  return fmt::format("{} by Tycho's {} kernel{}", name, instruction_set(), note);
}

}  // namespace tycho
