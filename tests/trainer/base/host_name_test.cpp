// Whether all of Tycho calls this machine what the kernel does.
#include "trainer/base/host_name.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace tycho {
namespace {

TEST(HostName, IsTheKernelsNodeName) {
  utsname system{};
  ASSERT_EQ(::uname(&system), 0);
  EXPECT_EQ(host_name(), system.nodename);
}

}  // namespace
}  // namespace tycho
