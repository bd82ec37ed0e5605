// The machine that a plan is for, and what the plan says of speed and of the mesh there. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/plan/plan.h"
#include "trainer/plan/step_time.h"
#include "trainer/recipe/machine.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns the machine of a config with machine.name. A CPU machine is this one unless `devices` says
/// otherwise. Throws Error (kUsage) for a number of ranks per machine that it does not have.
Machine planned_machine(const TrainConfig& config, const PlanDevices& devices);
/// Returns the ranks per machine: that of `devices`, else the GPUs of a node, else all ranks.
int64_t ranks_per_node(const TrainConfig& config, const PlanDevices& devices);

/// Returns the memory that a rank takes on its device; on a CPU it includes the copies for checkpoints.
int64_t device_bytes(const Plan& plan, const Machine& machine);

/// Returns "41 ms" or "1.32 s".
std::string time_text(double s);

/// Adds the estimate to a plan with memory, mesh and traffic.
void add_estimate(const TrainConfig& config, const PlanDevices& devices, Plan& plan);
/// Returns "h100: 8 a node, 84.8 GB each; NVLink 350 GB/s, network 45 GB/s".
std::string machine_line(const Machine& machine);
/// Returns "1.32 s a step, 795 K tokens/s, MFU 41.2 % (estimated)".
std::string speed_line(const StepTime& time, const Machine& machine);
/// Returns the wait along each axis: "dp_shard 2.1 % over NVLink"; "" for one rank.
std::string waits_text(const StepTime& time, const Machine& machine);

}  // namespace tycho
