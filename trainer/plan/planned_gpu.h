// The GPU that a plan is for. Torch-free.
#pragma once
#include <string>

#include "trainer/base/gpu_shape.h"
#include "trainer/plan/plan.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns its name; "" when neither `devices` nor the recipe's machine has one.
std::string planned_gpu_name(const TrainConfig& config, const PlanDevices& devices);
/// Returns its shape: the given one, else that of the name; an unknown number of multiprocessors is an
/// H100's.
GpuShape planned_gpu(const TrainConfig& config, const PlanDevices& devices);

}  // namespace tycho
