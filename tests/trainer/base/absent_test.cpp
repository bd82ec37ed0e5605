// Names of what Tycho does not have.
#include "trainer/base/absent.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(AbsentFeature, KnowsTheNamesOfExperts) {
  for (const char* name :
       {"moe_num_experts", "num_local_experts", "num_experts_per_tok", "moe_top_k", "mb_moe", "mb_dmoe",
        "torch_dmoe", "dmoe", "router_aux_loss_coef", "expert_parallel_degree"})
    EXPECT_EQ(absent_feature(name), "mixtures of experts are not supported") << name;
}

TEST(AbsentFeature, LeavesOtherNamesAlone) {
  for (const char* name : {"", "mode", "mb_size", "momentum", "remote", "experiment"})
    EXPECT_EQ(absent_feature(name), "") << name;
}

}  // namespace
}  // namespace tycho
