// What tycho ctl refuses before it asks a run.
#include "tests/host/shell.h"

namespace tycho {
namespace {

using CtlTest = ShellTest;

TEST_F(CtlTest, ATagIsTheNameOfAFolder) {
  const Outcome refused = here("tycho ctl runs/x save a/b");
  EXPECT_EQ(refused.code, 2);
  EXPECT_CONTAINS(refused.output, "[tycho ctl] wanted a name without \"/\", given a/b");
}

}  // namespace
}  // namespace tycho
