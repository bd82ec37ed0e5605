// Which interface ranks listen on: one, and the right one.
#include "trainer/rendezvous/endpoint.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/trainer/rendezvous/refusal.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

Environment variables(const std::map<std::string, std::string>& set) {
  return [set](const std::string& name) -> std::optional<std::string> {
    const auto found = set.find(name);
    if (found == set.end()) return std::nullopt;
    return found->second;
  };
}

RankInfo far_apart(const std::string& address) {
  return {.num_ranks = 4, .num_local_ranks = 2, .address = address, .port = 20001, .source = "Slurm"};
}

TEST(Endpoint, TextsComeBack) {
  EXPECT_EQ(numeric_endpoint("10.0.0.7", 4711).text(), "10.0.0.7:4711");
  EXPECT_EQ(numeric_endpoint("fe80::1", 4711).text(), "[fe80::1]:4711");
  EXPECT_EQ(numeric_endpoint("::1", 1).port(), 1);
  EXPECT_TRUE(numeric_endpoint("::1", 1).is_loopback());
  EXPECT_TRUE(numeric_endpoint("127.0.1.1", 1).is_loopback());
  EXPECT_FALSE(numeric_endpoint("10.0.0.7", 1).is_loopback());
  EXPECT_THROW(numeric_endpoint("localhost", 1), Error);
}

TEST(Endpoint, RanksOfOneMachineListenOnLoopbackWhateverVariablesSay) {
  RankInfo place = far_apart("node1");
  place.num_local_ranks = place.num_ranks;
  const Environment any = variables({{"TYCHO_INTERFACE", "any"}, {"GLOO_SOCKET_IFNAME", "eth0"}});
  EXPECT_EQ(rendezvous_endpoint(place, any).text(), "127.0.0.1:20001");
  EXPECT_EQ(own_endpoint(place, numeric_endpoint("127.0.0.1", 50000), any).text(), "127.0.0.1:0");
}

TEST(Endpoint, RankZeroListensAtTheAddressThatTheOthersWereGiven) {
  EXPECT_EQ(rendezvous_endpoint(far_apart("127.0.0.1"), variables({})).text(), "127.0.0.1:20001");
  EXPECT_TRUE(rendezvous_endpoint(far_apart("localhost"), variables({})).is_loopback());
}

TEST(Endpoint, AnAddressOfAnotherMachineIsRefused) {
  const std::string text = refusal_of([] { rendezvous_endpoint(far_apart("192.0.2.77"), variables({})); });
  EXPECT_CONTAINS(text, "rank 0 cannot listen at 192.0.2.77 (Slurm): it is not an address of this machine");
  EXPECT_CONTAINS(text, "Set TYCHO_INTERFACE");
  EXPECT_CONTAINS(refusal_of([] { rendezvous_endpoint(far_apart("no-such-host.invalid"), variables({})); }),
                  "the name no-such-host.invalid is not known");
}

TEST(Endpoint, TheOthersListenWhereTheyReachedRankZero) {
  const Endpoint line = numeric_endpoint("10.1.2.3", 50000);
  EXPECT_EQ(own_endpoint(far_apart("node1"), line, variables({})).text(), "10.1.2.3:0");
}

TEST(Endpoint, AnInterfaceMayBeChosen) {
  const Endpoint line = numeric_endpoint("10.1.2.3", 50000);
  const RankInfo place = far_apart("192.0.2.77");
  for (const char* name : {"TYCHO_INTERFACE", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    EXPECT_EQ(rendezvous_endpoint(place, variables({{name, "lo"}})).text(), "127.0.0.1:20001") << name;
    EXPECT_EQ(own_endpoint(place, line, variables({{name, "lo"}})).text(), "127.0.0.1:0") << name;
  }
  EXPECT_CONTAINS(
      refusal_of([&] {
        rendezvous_endpoint(place, variables({{"TYCHO_INTERFACE", "no0"}}));
      }),
      "TYCHO_INTERFACE expected the name of a network interface of this machine that is up, or any; got "
      "\"no0\"");
  // NCCL's may be a list or a pattern, which is not for us.
  EXPECT_EQ(own_endpoint(place, line, variables({{"NCCL_SOCKET_IFNAME", "^docker,lo"}})).text(),
            "10.1.2.3:0");
}

TEST(Endpoint, AllInterfacesOnlyWhenAskedTo) {
  EXPECT_EQ(rendezvous_endpoint(far_apart("node1"), variables({{"TYCHO_INTERFACE", "any"}})).text(),
            "0.0.0.0:20001");
}

}  // namespace
}  // namespace tycho
