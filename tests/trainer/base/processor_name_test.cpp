// Names of processors from texts of /proc/cpuinfo.
#include "trainer/base/processor_name.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tycho {
namespace {

std::string name_in(const std::string& text) {
  std::istringstream in(text);
  return processor_name(in);
}

TEST(ProcessorName, IsTheModelsWhereLinuxNamesIt) {
  EXPECT_EQ(name_in("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9B14\nflags\t\t: fpu\n"),
            "AMD EPYC 9B14");
}

TEST(ProcessorName, IsItsNumbersOnArm) {
  EXPECT_EQ(name_in("processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\nCPU "
                    "revision\t: 0\n\n"
                    "processor\t: 1\nCPU implementer\t: 0x42\nCPU part\t: 0xd80\n"),
            "Arm processor, implementer 0x41, part 0xd4f");
}

TEST(ProcessorName, IsNeverEmpty) { EXPECT_EQ(name_in(""), "CPU"); }

}  // namespace
}  // namespace tycho
