// The machine that a plan is for, and what the plan says of speed and of the mesh there. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/config/train_config.h"
#include "trainer/machine/config.h"
#include "trainer/plan/plan.h"
#include "trainer/plan/step_time.h"

namespace tycho {

/// Of a config with machine.name. A CPU machine is the one at hand unless `devices` says otherwise. Throws
/// Error (kUsage) for ranks per machine that such a machine does not have.
Machine planned_machine(const TrainConfig& config, const PlanDevices& devices);
/// The ranks of each machine: those of `devices`, else the GPUs of a node, else all ranks.
int64_t ranks_per_machine(const TrainConfig& config, const PlanDevices& devices);

/// What a rank takes of its device's memory: on a CPU the copies for checkpoints, too.
int64_t device_bytes(const Plan& plan, const Machine& machine);

/// "41 ms", "1.32 s".
std::string time_text(double s);

/// Of a plan with its memory, its mesh and its traffic.
void add_estimate(const TrainConfig& config, const PlanDevices& devices, Plan& plan);
/// "h100: 8 a node, 84.8 GB each; NVLink 350 GB/s, network 45 GB/s".
std::string machine_line(const Machine& machine);
/// "1.32 s a step, 795 K tokens/s, MFU 41.2 % (estimated)".
std::string speed_line(const StepTime& time, const Machine& machine);
/// Of each axis: "dp_shard 2.1 % over NVLink"; "" for one rank.
std::string waits_text(const StepTime& time, const Machine& machine);

}  // namespace tycho
