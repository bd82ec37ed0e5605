// Slurm's short forms of hosts and counts, right and wrong.
#include "trainer/rendezvous/slurm_lists.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

using Hosts = std::vector<std::string>;

TEST(SlurmHosts, ExpandsRangesInOrder) {
  EXPECT_EQ(expand_slurm_hosts("gpu3"), Hosts{"gpu3"});
  EXPECT_EQ(expand_slurm_hosts("node[001-003,7],gpu3"),
            (Hosts{"node001", "node002", "node003", "node7", "gpu3"}));
  EXPECT_EQ(expand_slurm_hosts("n[9-11]"), (Hosts{"n9", "n10", "n11"}));
  EXPECT_EQ(expand_slurm_hosts("n[098-101].cluster.local"),
            (Hosts{"n098.cluster.local", "n099.cluster.local", "n100.cluster.local", "n101.cluster.local"}));
  EXPECT_EQ(expand_slurm_hosts("r[1-2]n[3,5]"), (Hosts{"r1n3", "r1n5", "r2n3", "r2n5"}));
  EXPECT_EQ(expand_slurm_hosts("a-b_c.d"), Hosts{"a-b_c.d"});
}

TEST(SlurmHosts, RefusesOtherText) {
  for (const char* text : {"",         ",",
                           "a,",       ",a",
                           "a,,b",     "n[",
                           "n[]",      "n[1",
                           "n]",       "n[1-]",
                           "n[-1]",    "n[3-1]",
                           "n[1,]",    "n[,1]",
                           "n[1-2-3]", "n[x]",
                           "n[[1]]",   "n[1]]",
                           "a b",      "a/b",
                           "$(x)",     "n[1234567890]",
                           "n[ 1]"}) {
    EXPECT_THROW(expand_slurm_hosts(text), Error) << text;
  }
}

TEST(SlurmHosts, HasLimits) {
  EXPECT_EQ(expand_slurm_hosts("n[0-65535]").size(), 65536u);
  EXPECT_THROW(expand_slurm_hosts("n[0-65536]"), Error);
  EXPECT_THROW(expand_slurm_hosts("n[0-999999999]"), Error);
  EXPECT_THROW(expand_slurm_hosts("n[0-999][0-999]"), Error);
  EXPECT_EQ(expand_slurm_hosts("n[1][2][3][4]"), Hosts{"n1234"});
  EXPECT_THROW(expand_slurm_hosts("n[1][2][3][4][5]"), Error);
  EXPECT_THROW(expand_slurm_hosts(std::string(256, 'n')), Error);
  EXPECT_THROW(expand_slurm_hosts(std::string(256, 'n') + "[1-2]"), Error);
}

TEST(SlurmHosts, ErrorsNameTheVariableAndShowWhatIsWanted) {
  try {
    expand_slurm_hosts("node[1-3");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[ranks] SLURM_STEP_NODELIST: a bracket is not closed; expected a list such as "
                 "node[001-003,7],gpu3, got \"node[1-3\"");
    EXPECT_EQ(error.code(), ExitCode::kTopology);
  }
}

TEST(SlurmCounts, ExpandsRepetitions) {
  EXPECT_EQ(expand_slurm_counts("8"), std::vector<int>{8});
  EXPECT_EQ(expand_slurm_counts("2(x3),1"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(expand_slurm_counts("2,1(x2),2"), (std::vector<int>{2, 1, 1, 2}));
}

TEST(SlurmCounts, RefusesOtherText) {
  for (const char* text : {"", "x", "2,", "2(", "2()", "2(x)", "2(x0)", "2(3)", "2(x3", "2(x3)x", "-1",
                           "2(x65537)", "2(x40000),2(x40000)", "1234567890"}) {
    EXPECT_THROW(expand_slurm_counts(text), Error) << text;
  }
}

}  // namespace
}  // namespace tycho
