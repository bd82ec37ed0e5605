// The name of this machine's processor, for people and for records of runs.
#pragma once
#include <istream>
#include <string>

namespace tycho {

/// Returns the name that `cpuinfo`, text of the form of /proc/cpuinfo, has for the first processor. Linux
/// names no 64-bit Arm processor: the numbers of its maker and of its kind take the name's place. "CPU" if
/// there are none either.
std::string processor_name(std::istream& cpuinfo);
/// Returns the name of this machine's processor.
std::string processor_name();

}  // namespace tycho
