// Cores of a rank: its own, or its share.
#include "trainer/rendezvous/rank_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace tycho {
namespace {

RankInfo one_of(int num_local_ranks, const std::string& source) {
  return {.num_ranks = num_local_ranks, .num_local_ranks = num_local_ranks, .source = source};
}

/// What `place` gets in a thread that is bound to one core, as a scheduler binds.
int cores_when_bound(const RankInfo& place) {
  int cores = 0;
  std::thread([&] {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    cores = cores_of_rank(place);
  }).join();
  return cores;
}

TEST(RankCores, OneRankHasAllAndSeveralShare) {
  const int all = usable_cores();
  EXPECT_GE(all, 1);
  EXPECT_EQ(cores_of_rank({}), all);
  EXPECT_EQ(threads_of_rank(0, {}), all);
  EXPECT_EQ(threads_of_rank(3, {}), 3);
  EXPECT_EQ(cores_of_rank(one_of(2, "tycho launch")), std::max(1, all / 2));
  EXPECT_EQ(cores_of_rank(one_of(1000, "tycho launch")), 1);
}

TEST(RankCores, WhatASchedulerBoundIsARanksOwn) {
  EXPECT_EQ(cores_when_bound(one_of(2, "Slurm")), 1);
  EXPECT_EQ(cores_when_bound({}), 1);
}

/// The cores of `place` where Slurm says that the step has `cpus` on this node.
int cores_with_slurm(const RankInfo& place, const std::string& cpus) {
  return cores_of_rank(place, [&](const std::string& name) -> std::optional<std::string> {
    if (name == "SLURM_CPUS_ON_NODE") return cpus;
    return std::nullopt;
  });
}

TEST(RankCores, NeverMoreThanSlurmAllocatedOnTheNode) {
  const int all = usable_cores();
  EXPECT_EQ(cores_with_slurm({}, "1"), 1);
  EXPECT_EQ(cores_with_slurm({}, "100000"), all);
  EXPECT_EQ(cores_with_slurm(one_of(2, "Slurm"), "2"), 1);
  EXPECT_EQ(cores_with_slurm(one_of(4, "tycho launch"), "3"), 1) << "a rank needs one";
}

TEST(RankCores, AnAllocationThatIsNotANumberIsIgnored) {
  const int all = usable_cores();
  for (const char* text : {"", "0", "-4", "4(x2)", "many", "99999999999"})
    EXPECT_EQ(cores_with_slurm({}, text), all) << text;
}

}  // namespace
}  // namespace tycho
