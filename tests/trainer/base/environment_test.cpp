// Variables that are set, empty or absent.
#include "trainer/base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tycho {
namespace {

TEST(EnvironmentTest, AVariableThatIsNotSetIsEmpty) {
  unsetenv("TYCHO_TEST_A");
  EXPECT_EQ(environment_variable("TYCHO_TEST_A"), "");
  setenv("TYCHO_TEST_A", "a b", 1);
  EXPECT_EQ(environment_variable("TYCHO_TEST_A"), "a b");
  unsetenv("TYCHO_TEST_A");
}

TEST(EnvironmentTest, TheFirstVariableWithAValueCounts) {
  unsetenv("TYCHO_TEST_A");
  setenv("TYCHO_TEST_B", "", 1);
  EXPECT_EQ(first_environment_variable({"TYCHO_TEST_A", "TYCHO_TEST_B"}), "");
  setenv("TYCHO_TEST_C", "c", 1);
  EXPECT_EQ(first_environment_variable({"TYCHO_TEST_A", "TYCHO_TEST_B", "TYCHO_TEST_C"}), "c");
  setenv("TYCHO_TEST_A", "a", 1);
  EXPECT_EQ(first_environment_variable({"TYCHO_TEST_A", "TYCHO_TEST_C"}), "a");
  for (const char* name : {"TYCHO_TEST_A", "TYCHO_TEST_B", "TYCHO_TEST_C"}) unsetenv(name);
}

}  // namespace
}  // namespace tycho
