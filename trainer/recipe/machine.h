// Figures of the machines of a run, for the planner: those of a named machine, and those that differ from it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/fields.h"
#include "trainer/base/precision.h"

namespace tycho {

struct MachineConfig {
  std::string name;
  std::optional<std::string> gpu;
  std::optional<Bytes> memory;
  std::optional<double> peak_tflops;
  std::optional<int64_t> gpus_per_node;
  std::optional<int64_t> nvlink_gpus;
  std::optional<double> nvlink_gb_s;
  std::optional<double> network_gb_s;
  std::optional<double> network_us;
  std::optional<double> efficiency;

  /// A string in place of the whole group sets this key: r.machine = "h100".
  static constexpr const char* kShorthand = "name";

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name,
      "The machines that the planner plans for: h100, h200 (nodes of 8), gb200 (nodes of 4, 72 joined by "
      "NVLink), cpu (the machine at hand), or custom. \"\" for no estimate. Training does not read this.");
    v("gpu", gpu, "Name of the GPU. null: that of the named machine, as for all keys below.");
    v("memory", memory, "Memory of one GPU that a program can use.");
    v("peak_tflops", peak_tflops, "Dense TFLOP/s of one GPU in the precision of the run.", positive);
    v("gpus_per_node", gpus_per_node, "GPUs of one node, with a rank each.", in_range(1, 1024));
    v("nvlink_gpus", nvlink_gpus, "GPUs that NVLink joins; those of a node when only gpus_per_node is given.",
      in_range(1, 0x1p20));
    v("nvlink_gb_s", nvlink_gb_s, "GB/s at which one GPU receives from others over NVLink.", positive);
    v("network_gb_s", network_gb_s, "GB/s at which one GPU receives from other nodes.", positive);
    v("network_us", network_us, "Microseconds that a collective between nodes takes at least.", at_least(0));
    v("efficiency", efficiency,
      "Share of the peak that large products and attention reach on the GPU, without waiting for others.",
      positive, at_most(1));
  }
};

class ConfigProblems;

/// Reports an unknown name, and keys that are missing or have no effect.
void check(const MachineConfig& machine, ConfigProblems& problems);

/// One kind of machine. Rates are those of one GPU (on a CPU machine, of one rank), in bytes and FLOP per
/// second.
struct Machine {
  std::string name;  // "h100"
  std::string gpu;   // "H100 HBM3"; "" for a CPU
  int64_t memory_bytes = 0;
  double peak_bf16 = 0, peak_fp32 = 0;
  int64_t gpus_per_node = 1;
  int64_t nvlink_gpus = 1;
  double nvlink_rate = 0, network_rate = 0;
  double nvlink_s = 0, network_s = 0;  // minimum time of a collective
  double efficiency = 0.5;
  /// Products of few columns or few tokens reach less: width / (width + half_width), and the same for tokens.
  double half_width = 0, half_tokens = 0;

  double peak(Precision precision) const { return precision == Precision::kBf16 ? peak_bf16 : peak_fp32; }
};

/// The resources of a machine without GPUs, which its ranks share.
struct HostSize {
  int64_t memory_bytes = 0;
  int64_t cores = 1;
};

/// Returns the valid values of `machine.name`.
std::vector<std::string> machine_names();
/// Returns the name of the machines that have GPUs of this model, as the driver names it; "" for a model
/// whose figures are not known.
std::string machine_of_gpu(std::string_view model);
/// Returns the machine of a config that check() passed, with a name. `host` and `ranks_per_node` are used
/// only for "cpu", whose ranks share the host.
Machine machine_of(const MachineConfig& config, const HostSize& host = {}, int64_t ranks_per_node = 1);

}  // namespace tycho
