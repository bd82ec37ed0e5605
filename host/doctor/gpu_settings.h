// Settings of GPUs, from nvidia-smi, that decide whether measurements can be repeated.
#pragma once
#include <string>
#include <vector>

#include "host/doctor/finding.h"

namespace tycho {

/// Fields that are asked for, in this order.
inline constexpr const char* kGpuSettingsQuery =
    "index,persistence_mode,clocks.max.sm,clocks.max.memory,clocks.applications.graphics,"
    "clocks.applications.memory";

/// Findings from the answer to --query-gpu with --format=csv,noheader,nounits: persistence mode, and clocks
/// of applications below the highest. Lines of another form are left out.
std::vector<Finding> gpu_settings_findings(const std::string& answer);

}  // namespace tycho
