// The name of this machine's processor, for people and for records of runs.
#pragma once
#include <istream>
#include <string>

namespace tycho {

/// Returns the name of the first processor in `cpuinfo`, which has the form of /proc/cpuinfo. For 64-bit Arm,
/// which Linux does not name, returns the numbers of its maker and its part. "CPU" if there are none
/// either.
std::string processor_name(std::istream& cpuinfo);
/// Returns the name of this machine's processor.
std::string processor_name();

}  // namespace tycho
