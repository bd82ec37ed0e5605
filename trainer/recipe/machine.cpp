// The machines that the planner knows, and the rules between the keys of `machine`.
#include "trainer/recipe/machine.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "trainer/base/config_problems.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr double kGB = 1e9, kMicro = 1e-6, kTera = 1e12;

/// Chosen so that the estimate is close to LLM Foundry's published numbers for H100 and those of TorchTitan's
/// users for GB200: bench/planned_speed.py prints both. Tycho itself has not been timed on these machines.
constexpr double kGpuEfficiency = 0.66, kHalfWidth = 800, kHalfTokens = 2100;

/// Returns the figures of a GPU machine. Rates of NVLink and of the network are those that NCCL's collectives
/// reach, about 0.8 and 0.9 of the data sheets'.
Machine gpu_machine(const char* name, const char* gpu, int64_t memory_gib, double peak_bf16,
                    double peak_fp32) {
  Machine machine;
  machine.name = name, machine.gpu = gpu;
  machine.memory_bytes = memory_gib << 30;
  machine.peak_bf16 = peak_bf16, machine.peak_fp32 = peak_fp32;
  machine.gpus_per_node = 8, machine.nvlink_gpus = 8;
  machine.nvlink_rate = 350 * kGB, machine.network_rate = 45 * kGB;
  machine.nvlink_s = 20 * kMicro, machine.network_s = 60 * kMicro;
  machine.efficiency = kGpuEfficiency, machine.half_width = kHalfWidth, machine.half_tokens = kHalfTokens;
  return machine;
}

Machine gb200() {
  Machine machine = gpu_machine("gb200", "GB200", 183, 2.5e15, 80e12);
  machine.gpus_per_node = 4, machine.nvlink_gpus = 72;
  machine.nvlink_rate = 700 * kGB;
  machine.efficiency = 0.60;
  return machine;
}

/// Returns the figures of a rank on a CPU machine. The ranks of a host share its cores and its memory, and
/// communicate over loopback.
Machine cpu(const HostSize& host, int64_t ranks_per_node) {
  constexpr double kFlopsOfCore = 0.1e12;
  Machine machine;
  machine.name = "cpu";
  machine.memory_bytes = host.memory_bytes / ranks_per_node;
  machine.peak_fp32 = machine.peak_bf16 =
      kFlopsOfCore * static_cast<double>(host.cores) / static_cast<double>(ranks_per_node);
  machine.gpus_per_node = machine.nvlink_gpus = ranks_per_node;
  machine.nvlink_rate = 3 * kGB, machine.network_rate = 1.1 * kGB;
  machine.nvlink_s = 30 * kMicro, machine.network_s = 100 * kMicro;
  machine.efficiency = 0.6;
  return machine;
}

Machine custom() {
  Machine machine = gpu_machine("custom", "GPU", 0, 0, 0);
  machine.nvlink_rate = machine.network_rate = 0;
  return machine;
}

Machine named(const std::string& name, const HostSize& host, int64_t ranks_per_node) {
  if (name == "h100") return gpu_machine("h100", "H100 HBM3", 79, 989.5e12, 67e12);
  if (name == "h200") return gpu_machine("h200", "H200", 139, 989.5e12, 67e12);
  if (name == "gb200") return gb200();
  if (name == "custom") return custom();
  TYCHO_CHECK(name == "cpu", "[machine] expected one of {}, got \"{}\"", fmt::join(machine_names(), ", "),
              name);
  return cpu(host, ranks_per_node);
}

/// Returns "; write "h100"" for another spelling, or how to describe a machine with figures of its own.
std::string what_to_write(std::string name, const std::vector<std::string>& names) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string& known : names)
    if (name.starts_with(known)) return fmt::format("; write \"{}\"", known);
  return "; figures of your own: machine = { name = \"custom\", memory = ..., peak_tflops = ... }";
}

}  // namespace

std::vector<std::string> machine_names() { return {"h100", "h200", "gb200", "cpu", "custom"}; }

std::string machine_of_gpu(std::string_view model) {
  if (model == "NVIDIA H100 80GB HBM3" || model == "H100 HBM3") return "h100";
  if (model == "NVIDIA H200" || model == "H200") return "h200";
  return model.starts_with("NVIDIA GB200") || model == "GB200" ? "gb200" : "";
}

void check(const MachineConfig& machine, ConfigProblems& problems) {
  const std::vector<std::string> names = machine_names();
  const bool is_known = std::find(names.begin(), names.end(), machine.name) != names.end();
  if (!machine.name.empty() && !is_known)
    problems.add("machine.name", "expected one of {}, got \"{}\"{}", fmt::join(names, ", "), machine.name,
                 what_to_write(machine.name, names));
  const auto key = [&](const char* name, bool given, bool needed) {
    const std::string path = std::string("machine.") + name;
    problems.idle(path, given, !machine.name.empty(), "without machine.name");
    if (machine.name == "custom" && needed && !given)
      problems.add(path, "is missing: machine \"custom\" has no figures of its own");
  };
  key("gpu", machine.gpu.has_value(), false);
  key("memory", machine.memory.has_value(), true);
  key("peak_tflops", machine.peak_tflops.has_value(), true);
  key("gpus_per_node", machine.gpus_per_node.has_value(), true);
  key("nvlink_gpus", machine.nvlink_gpus.has_value(), false);
  key("nvlink_gb_s", machine.nvlink_gb_s.has_value(), true);
  key("network_gb_s", machine.network_gb_s.has_value(), true);
  key("network_us", machine.network_us.has_value(), false);
  key("efficiency", machine.efficiency.has_value(), false);
  if (machine.memory && machine.memory->value <= 0) problems.add("machine.memory", "must be more than 0");
}

Machine machine_of(const MachineConfig& config, const HostSize& host, int64_t ranks_per_node) {
  if (config.name == "cpu" && config.gpus_per_node) ranks_per_node = *config.gpus_per_node;
  Machine machine = named(config.name, host, ranks_per_node);
  if (config.gpu) machine.gpu = *config.gpu;
  if (config.memory) machine.memory_bytes = config.memory->value;
  if (config.peak_tflops) machine.peak_bf16 = machine.peak_fp32 = *config.peak_tflops * kTera;
  if (config.gpus_per_node) machine.gpus_per_node = machine.nvlink_gpus = *config.gpus_per_node;
  if (config.nvlink_gpus) machine.nvlink_gpus = *config.nvlink_gpus;
  if (config.nvlink_gb_s) machine.nvlink_rate = *config.nvlink_gb_s * kGB;
  if (config.network_gb_s) machine.network_rate = *config.network_gb_s * kGB;
  if (config.network_us) machine.network_s = *config.network_us * kMicro;
  if (config.efficiency) machine.efficiency = *config.efficiency;
  return machine;
}

}  // namespace tycho
