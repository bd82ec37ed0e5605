// Settings of GPUs, from nvidia-smi, that decide whether measurements can be repeated.
#pragma once
#include <string>
#include <vector>

#include "host/doctor/finding.h"

namespace tycho {

/// The queried fields, in this order.
inline constexpr const char* kGpuSettingsQuery =
    "index,persistence_mode,clocks.max.sm,clocks.max.memory,clocks.applications.graphics,"
    "clocks.applications.memory";

/// Makes findings from the answer to --query-gpu with --format=csv,noheader,nounits: persistence mode, and
/// application clocks below the highest. Skips lines of another form.
std::vector<Finding> gpu_settings_findings(const std::string& answer);

}  // namespace tycho
