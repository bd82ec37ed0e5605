// Reads /proc/cpuinfo, whose lines are "key : value".
#include "trainer/base/processor_name.h"

#include <fstream>
#include <string>

namespace tycho {

std::string processor_name(std::istream& cpuinfo) {
  std::string maker, part;
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (maker.empty() && line.starts_with("CPU implementer")) maker = value;
    if (part.empty() && line.starts_with("CPU part")) part = value;
  }
  return maker.empty() ? "CPU" : "Arm processor, implementer " + maker + ", part " + part;
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  return processor_name(in);
}

}  // namespace tycho
