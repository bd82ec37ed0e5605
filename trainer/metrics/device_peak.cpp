// The table of peaks, from the vendors' data sheets.
#include "trainer/metrics/device_peak.h"

#include <array>
#include <cctype>

namespace tycho {
namespace {

struct Peak {
  const char* model;  // a word of the device's name
  const char*
      variant;  // another word, which tells boards of one model apart; "" where there is one board only
  double bf16;
  double fp32;  // 0: not in the table
};

// Variants come before the board without one.
constexpr std::array kPeaks = {
    Peak{"A100", "", 312e12, 19.5e12}, Peak{"H100", "HBM3", 989.5e12, 67e12},
    Peak{"H100", "NVL", 835e12, 0},    Peak{"H100", "PCIe", 756.5e12, 0},
    Peak{"H200", "NVL", 0, 0},         Peak{"H200", "", 989.5e12, 67e12},
    Peak{"H20", "", 148e12, 0},        Peak{"GB200", "", 2.5e15, 0},
    Peak{"GB300", "", 2.5e15, 0},      Peak{"B200", "", 2.25e15, 0},
    Peak{"B300", "", 2.25e15, 0},      Peak{"A10", "", 125e12, 0},
    Peak{"A6000", "", 154.85e12, 0},   Peak{"L40S", "", 362e12, 0},
    Peak{"MI250X", "", 191.5e12, 0},   Peak{"MI300X", "", 1300e12, 0},
    Peak{"MI325X", "", 1300e12, 0},    Peak{"MI355X", "", 2500e12, 0},
};

/// Memory that the driver leaves, in whole GiB.
struct Memory {
  const char* model;
  const char* variant;
  int64_t gib;
};
constexpr std::array kMemories = {
    Memory{"A100", "80GB", 79}, Memory{"A100", "40GB", 39}, Memory{"H100", "NVL", 93},
    Memory{"H100", "", 79},     Memory{"H200", "", 139},    Memory{"L40S", "", 44},
    Memory{"A10", "", 22},      Memory{"A6000", "", 47},
};

struct Shape {
  const char* model;
  const char* variant;
  GpuShape shape;
};
constexpr std::array kShapes = {
    Shape{"A100", "", {108, 80}},   Shape{"H100", "PCIe", {114, 90}}, Shape{"H100", "", {132, 90}},
    Shape{"H200", "", {132, 90}},   Shape{"H20", "", {78, 90}},       Shape{"GB200", "", {148, 100}},
    Shape{"GB300", "", {148, 103}}, Shape{"B200", "", {148, 100}},    Shape{"B300", "", {148, 103}},
    Shape{"A10", "", {72, 86}},     Shape{"A6000", "", {84, 86}},     Shape{"L40S", "", {142, 89}},
    Shape{"L40", "", {142, 89}},    Shape{"L4", "", {58, 89}},        Shape{"3090", "", {82, 86}},
    Shape{"4090", "", {128, 89}},   Shape{"5090", "", {170, 120}},
};

/// Returns true when `word` occurs in `name` between non-alphanumeric characters: "A10" is not in
/// "A100-SXM4-80GB".
bool has_word(std::string_view name, std::string_view word) {
  const auto is_edge = [&](size_t i) {
    return i >= name.size() || !std::isalnum(static_cast<unsigned char>(name[i]));
  };
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if ((at == 0 || is_edge(at - 1)) && is_edge(at + word.size())) return true;
  }
  return false;
}

}  // namespace

std::optional<double> device_peak_flops(std::string_view name, Precision precision) {
  if (has_word(name, "MIG")) return std::nullopt;
  for (const Peak& peak : kPeaks) {
    if (!has_word(name, peak.model)) continue;
    if (*peak.variant != '\0' && !has_word(name, peak.variant)) continue;
    const double flops = precision == Precision::kBf16 ? peak.bf16 : peak.fp32;
    return flops > 0 ? std::optional(flops) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<int64_t> gpu_memory_bytes(std::string_view name) {
  if (has_word(name, "MIG")) return std::nullopt;
  for (const Memory& memory : kMemories)
    if (has_word(name, memory.model) && (*memory.variant == '\0' || has_word(name, memory.variant)))
      return memory.gib << 30;
  return std::nullopt;
}

GpuShape gpu_shape(std::string_view name) {
  if (has_word(name, "MIG")) return {};
  for (const Shape& one : kShapes)
    if (has_word(name, one.model) && (*one.variant == '\0' || has_word(name, one.variant))) return one.shape;
  return {};
}

}  // namespace tycho
