// Ranks on two machines, as network namespaces show them: which interface they use, and a link that is cut.
#include <chrono>
#include <cstdio>

#include "tests/ranks/ranks_fixture.h"

namespace tycho {
namespace {

/// Two machines, "a" with ranks 0 and 1 and "b" with rank 2. Two networks join them: "slow0" with the
/// addresses 10.231.0.1 and 10.231.0.2, and "fast0" with 10.232.0.1 and 10.232.0.2.
class NetworkTest : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    // In a chroot they can be made but not entered.
    const Outcome made = here("ip netns add " + machine("a") + " && ip netns add " + machine("b") +
                              " && ip netns exec " + machine("b") + " true");
    if (made.code != 0) GTEST_SKIP() << "network namespaces cannot be used here: " << made.output;
    std::string links = "true";
    for (const auto& [name, network] : {std::pair{"slow0", "10.231.0."}, {"fast0", "10.232.0."}})
      links += std::string(" && ip link add ") + name + " netns " + machine("a") + " type veth peer name " +
               name + " netns " + machine("b") + configure("a", name, network + std::string("1")) +
               configure("b", name, network + std::string("2"));
    const Outcome joined = here(links);
    ASSERT_EQ(joined.code, 0) << joined.output;
  }
  void TearDown() override {
    for (const char* name : {"a", "b"}) here("ip netns del " + machine(name));
    RanksTest::TearDown();
  }

  static std::string machine(const std::string& name) {
    return "tycho-" + std::to_string(getpid()) + "-" + name;
  }
  static std::string configure(const std::string& name, const std::string& device,
                               const std::string& address) {
    const std::string ip = " && ip -n " + machine(name) + " ";
    return ip + "addr add " + address + "/24 dev " + device + ip + "link set " + device + " up" + ip +
           "link set lo up";
  }
  /// A shell line that starts the three ranks, as torchrun's variables say; they make their token themselves.
  static std::string start(const std::string& arguments, const std::string& variables = "",
                           const std::string& of_rank_1 = "") {
    const auto rank = [&](const std::string& number, const std::string& name, const std::string& local) {
      return in_background("ip netns exec " + machine(name) + " env RANK=" + number +
                               " WORLD_SIZE=3 LOCAL_RANK=" + (name == "a" ? number : "0") +
                               " LOCAL_WORLD_SIZE=" + local + " MASTER_ADDR=10.231.0.1 MASTER_PORT=20111 " +
                               variables + " " + (number == "1" ? of_rank_1 : "") +
                               " " TYCHO_PROGRAM " run x.lua " + arguments,
                           "rank_" + number);
    };
    return "true; " + rank("0", "a", "2") + rank("1", "a", "2") + rank("2", "b", "1");
  }
  static std::string until_it_saved(const std::string& run) {
    return "for i in $(seq 1200); do ls " + run +
           "/checkpoints/step-*/COMMIT >/dev/null 2>&1 && break; sleep 0.05; done; ";
  }
  static constexpr const char* kCodes =
      "wait $rank_0; a=$?; wait $rank_1; b=$?; wait $rank_2; echo codes $a $b $?";
  std::string logs() const { return text("rank_0.log") + text("rank_1.log") + text("rank_2.log"); }
};

TEST_F(NetworkTest, RanksOnTwoMachinesTrainWhatOneDoes) {
  write(recipe("r.global_batch = \"6sp\"\n"));
  ASSERT_EQ(run(1, "one").code, 0);
  const Outcome outcome = here(start("run_dir=three") + kCodes);
  EXPECT_CONTAINS(outcome.output, "codes 0 0 0") << logs();
  expect_close(numbers("one", "loss"), numbers("three", "loss"));
  EXPECT_EQ(events("three", "checkpoint").size(), 3U);
}

TEST_F(NetworkTest, RanksListenOnOneInterface) {
  write(recipe("r.global_batch, r.max_duration = \"6sp\", \"100000ba\"\n"));
  // In the hexadecimal of /proc/net/tcp, least significant byte first.
  const auto listening = [](const std::string& name) {
    return "ip netns exec " + machine(name) +
           " awk '$4 == \"0A\" { print \"at\", substr($2, 1, 8) }' /proc/net/tcp; ";
  };
  const auto at = [&](const std::string& run, const std::string& variables) {
    return here(start("run_dir=" + run, variables) + until_it_trains(run) + listening("a") + "echo; " +
                listening("b") + "kill -TERM $rank_2; " + kCodes)
        .output;
  };
  EXPECT_EQ(at("slow", ""), "at 0100E70A\nat 0100E70A\n\nat 0200E70A\ncodes 143 143 143\n") << logs();
  EXPECT_EQ(at("fast", "TYCHO_INTERFACE=fast0 TYCHO_ADDRESS=10.232.0.1"),
            "at 0100E80A\nat 0100E80A\n\nat 0200E80A\ncodes 143 143 143\n")
      << logs();
}

TEST_F(NetworkTest, AnInterfaceThatDoesNotExistIsNamed) {
  write(recipe("r.global_batch = \"6sp\"\n"));
  const Outcome outcome = here(start("run_dir=run", "TYCHO_INTERFACE=fast9") +
                               "wait $rank_0; echo code $?; kill "
                               "-TERM $rank_1 $rank_2; wait");
  EXPECT_CONTAINS(outcome.output, "code 11\n");
  EXPECT_CONTAINS(text("rank_0.log"),
                  "TYCHO_INTERFACE expected the name of a network interface of this machine");
}

TEST_F(NetworkTest, ARankThatAnotherCannotReachIsNamedSoon) {
  write(recipe("r.global_batch = \"6sp\"\n"));
  ASSERT_EQ(here("ip -n " + machine("b") + " link set fast0 down").code, 0);
  const Outcome outcome = here(start("run_dir=run", "", "TYCHO_INTERFACE=fast0") + kCodes);
  EXPECT_CONTAINS(outcome.output, "codes 11 11 11") << logs();
  for (const char* rank : {"0", "1"}) {
    const std::string log = text(std::string("rank_") + rank + ".log");
    EXPECT_CONTAINS(log, "[parallel] rank 2 ended the run: [ranks] rank 2 cannot connect to 10.232.0.1:");
    EXPECT_CONTAINS(log, "set TYCHO_INTERFACE to the network interface");
  }
  EXPECT_CONTAINS(text("rank_2.log"), "[ranks] rank 2 waits for rank 1 at 10.232.0.1:");
  EXPECT_CONTAINS(text("rank_2.log"), "Network is unreachable; gives up in ");
  EXPECT_CONTAINS(text("rank_2.log"), "Network is unreachable; set TYCHO_INTERFACE to the network interface");
}

TEST_F(NetworkTest, ACutLinkIsNoticedOnBothSidesAndTheSameCommandResumes) {
  write(recipe("r.global_batch, r.max_duration = \"6sp\", \"100000ba\"\n"));
  const auto begin = std::chrono::steady_clock::now();
  const Outcome cut = here(start("run_dir=run") + until_it_saved("run") + "date +%s.%N >cut; ip -n " +
                           machine("a") + " link set slow0 down; " + kCodes + "; date +%s.%N >ended");
  EXPECT_CONTAINS(cut.output, "codes 143 143 143") << logs();
  for (const char* rank : {"0", "1"}) {
    const std::string log = text(std::string("rank_") + rank + ".log");
    EXPECT_CONTAINS(log, "[parallel] rank 2 (");
    EXPECT_CONTAINS(log, "has not answered for 30 s. The same command resumes from the newest checkpoint");
  }
  EXPECT_CONTAINS(text("rank_2.log"), "[parallel] rank 0 (");
  EXPECT_CONTAINS(text("rank_2.log"), "has not answered for 30 s");
  const double took_s = std::stod(text("ended")) - std::stod(text("cut"));
  std::printf("A cut link was noticed, and all three ranks had ended, after %.1f s\n", took_s);
  EXPECT_GT(took_s, 25);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(5));
  here("ip -n " + machine("a") + " link set slow0 up");
  const Outcome resumed =
      here(start("run_dir=run") +
           "for i in $(seq 2400); do grep -q 'resumed from step' rank_0.log && break; sleep "
           "0.05; done; kill -TERM $rank_1; " +
           kCodes);
  EXPECT_CONTAINS(resumed.output, "codes 143 143 143") << logs();
  EXPECT_CONTAINS(text("rank_0.log"), "resumed from step");
}

}  // namespace
}  // namespace tycho
