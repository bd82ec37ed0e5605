// Where a process stands, from variables as launchers set them and as they go wrong.
#include "trainer/rendezvous/rank_info.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/trainer/rendezvous/refusal.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

using Set = std::map<std::string, std::string>;

RankInfo place_of(const Set& variables) {
  return find_rank_place([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string refusal(const Set& variables) {
  try {
    place_of(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTopology);
    return error.what();
  }
  return "not refused";
}

Set operator+(Set base, const Set& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

Set without(Set base, const std::string& name) {
  base.erase(name);
  return base;
}

void expect_alone(const Set& variables) {
  const RankInfo place = place_of(variables);
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.num_ranks, 1);
  EXPECT_EQ(place.num_local_ranks, 1);
  EXPECT_EQ(place.source, "");
}

const Set kLaunch = {{"TYCHO_RANK", "2"},           {"TYCHO_NUM_RANKS", "4"},
                     {"TYCHO_LOCAL_RANK", "1"},     {"TYCHO_NUM_LOCAL_RANKS", "2"},
                     {"TYCHO_ADDRESS", "10.0.0.1"}, {"TYCHO_PORT", "4242"},
                     {"TYCHO_TOKEN", kToken}};

/// The sixth of seven tasks on four nodes, in a step that left the first node of the job out.
const Set kSlurm = {{"SLURM_JOB_ID", "812345"},
                    {"SLURM_STEP_ID", "3"},
                    {"SLURM_JOB_NODELIST", "gpu[01-05]"},
                    {"SLURM_STEP_NODELIST", "gpu[02-05]"},
                    {"SLURM_STEP_NUM_TASKS", "7"},
                    {"SLURM_NTASKS", "7"},
                    {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                    {"SLURM_PROCID", "5"},
                    {"SLURM_NODEID", "2"},
                    {"SLURM_LOCALID", "1"}};

const Set kTorchrun = {{"RANK", "9"},
                       {"WORLD_SIZE", "16"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "8"},
                       {"MASTER_ADDR", "head"},
                       {"MASTER_PORT", "29500"},
                       {"TORCHELASTIC_RUN_ID", "run-7"}};

TEST(RankPlaceTest, IsAloneWhenNothingSaysOtherwise) {
  expect_alone({});
  expect_alone({{"HOME", "/root"}, {"MASTER_ADDR", "head"}});
}

TEST(RankPlaceTest, ReadsWhatTychoLaunchSets) {
  const RankInfo place = place_of(kLaunch);
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.num_ranks, 4);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.num_local_ranks, 2);
  EXPECT_EQ(place.address, "10.0.0.1");
  EXPECT_EQ(place.port, 4242);
  EXPECT_EQ(place.token, kToken);
  EXPECT_EQ(place.source, "tycho launch");
}

TEST(RankPlaceTest, OneRankOfTychoIsAloneWhateverTheSchedulerSays) {
  expect_alone({{"TYCHO_NUM_RANKS", "1"}});
  expect_alone(kSlurm + Set{{"TYCHO_NUM_RANKS", "1"}});
  expect_alone(kTorchrun + Set{{"TYCHO_NUM_RANKS", "1"}});
  expect_alone(kLaunch + Set{{"TYCHO_NUM_RANKS", "1"}});
}

TEST(RankPlaceTest, EveryVariableOfTychoLaunchIsNeeded) {
  for (const auto& [name, value] : kLaunch) EXPECT_CONTAINS(refusal(without(kLaunch, name)), name);
  EXPECT_EQ(refusal({{"TYCHO_RANK", "0"}}),
            "[ranks] TYCHO_RANK is set, so TYCHO_NUM_RANKS must be too; it is not. TYCHO_NUM_RANKS=1 makes "
            "it a single process");
}

TEST(RankPlaceTest, RanksOfTychoMustBeAmongTheirNumber) {
  EXPECT_EQ(refusal(kLaunch + Set{{"TYCHO_RANK", "4"}}),
            "[ranks] TYCHO_RANK expected a whole number from 0 to 3, got \"4\"; TYCHO_NUM_RANKS=1 makes it a "
            "single process");
  for (const char* text : {"-1", "x", "1x", " 1", "99999999999999999999"})
    EXPECT_CONTAINS(refusal(kLaunch + Set{{"TYCHO_RANK", text}}), "TYCHO_RANK");
  EXPECT_CONTAINS(refusal(kLaunch + Set{{"TYCHO_LOCAL_RANK", "2"}}), "TYCHO_LOCAL_RANK");
  EXPECT_CONTAINS(refusal(kLaunch + Set{{"TYCHO_PORT", "65536"}}), "TYCHO_PORT");
  EXPECT_CONTAINS(refusal(kLaunch + Set{{"TYCHO_NUM_LOCAL_RANKS", "5"}}),
                  "a machine cannot have more ranks than the run");
}

TEST(RankPlaceTest, ReadsASlurmStep) {
  const RankInfo place = place_of(kSlurm);
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.num_ranks, 7);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.num_local_ranks, 2);
  EXPECT_EQ(place.address, "gpu02");
  EXPECT_EQ(place.port, 20000 + (812345 * 64 + 3) % 12000);
  EXPECT_EQ(place.job, "slurm-812345.3-0");
  EXPECT_EQ(place.source, "Slurm");
}

TEST(RankPlaceTest, TheLastNodeOfASlurmStepMayHaveFewerTasks) {
  const RankInfo place =
      place_of(kSlurm + Set{{"SLURM_PROCID", "6"}, {"SLURM_NODEID", "3"}, {"SLURM_LOCALID", "0"}});
  EXPECT_EQ(place.num_local_ranks, 1);
  EXPECT_EQ(place.local_rank, 0);
}

TEST(RankPlaceTest, AllRanksOfASlurmStepMeetAtOnePlace) {
  const RankInfo first =
      place_of(kSlurm + Set{{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}, {"SLURM_LOCALID", "0"}});
  const RankInfo other = place_of(kSlurm);
  EXPECT_EQ(first.address, other.address);
  EXPECT_EQ(first.port, other.port);
  EXPECT_EQ(first.job, other.job);
}

TEST(RankPlaceTest, StepsAndRestartsOfOneJobAreToldApart) {
  const RankInfo other_step = place_of(kSlurm + Set{{"SLURM_STEP_ID", "4"}});
  EXPECT_NE(other_step.port, place_of(kSlurm).port);
  EXPECT_NE(other_step.job, place_of(kSlurm).job);
  EXPECT_NE(place_of(kSlurm + Set{{"SLURM_RESTART_COUNT", "1"}}).job, place_of(kSlurm).job);
}

TEST(RankPlaceTest, TheBatchScriptAndAnSallocShellAreNoRanks) {
  const Set batch = {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}};
  expect_alone(batch);
  expect_alone(batch + Set{{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}});
}

TEST(RankPlaceTest, EveryVariableOfASlurmStepIsNeeded) {
  for (const char* name : {"SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
                           "SLURM_STEP_NODELIST", "SLURM_JOB_ID", "SLURM_STEP_ID"})
    EXPECT_CONTAINS(refusal(without(kSlurm, name)), name);
}

TEST(RankPlaceTest, SlurmVariablesThatContradictEachOtherAreNamed) {
  EXPECT_CONTAINS(refusal(kSlurm + Set{{"SLURM_PROCID", "7"}}), "SLURM_PROCID");
  EXPECT_CONTAINS(refusal(kSlurm + Set{{"SLURM_LOCALID", "2"}}), "SLURM_LOCALID");
  EXPECT_CONTAINS(refusal(kSlurm + Set{{"SLURM_STEP_TASKS_PER_NODE", "2(x4)"}}),
                  "adds up to 8 tasks, but SLURM_STEP_NUM_TASKS is 7");
  EXPECT_CONTAINS(refusal(kSlurm + Set{{"SLURM_NODEID", "4"}}), "SLURM_NODEID is 4");
}

TEST(RankPlaceTest, RankZeroMustBeWhereTheOthersLookForIt) {
  const Set elsewhere = kSlurm + Set{{"SLURM_PROCID", "0"}};
  EXPECT_CONTAINS(refusal(elsewhere), "srun --distribution=block");
  const Set other_on_the_first =
      kSlurm + Set{{"SLURM_PROCID", "4"}, {"SLURM_NODEID", "0"}, {"SLURM_LOCALID", "0"}};
  EXPECT_CONTAINS(refusal(other_on_the_first), "TYCHO_ADDRESS");
  EXPECT_EQ(place_of(elsewhere + Set{{"TYCHO_ADDRESS", "gpu04"}}).address, "gpu04");
}

TEST(RankPlaceTest, ReadsTorchrunsVariables) {
  const RankInfo place = place_of(kTorchrun);
  EXPECT_EQ(place.rank, 9);
  EXPECT_EQ(place.num_ranks, 16);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.num_local_ranks, 8);
  EXPECT_EQ(place.address, "head");
  EXPECT_EQ(place.port, 29500);
  EXPECT_EQ(place.job, "run-7-0");
  EXPECT_EQ(place.source, "RANK and WORLD_SIZE");
}

TEST(RankPlaceTest, WithoutLocalRanksEveryMachineHasOne) {
  const RankInfo place =
      place_of(without(without(without(kTorchrun, "LOCAL_RANK"), "LOCAL_WORLD_SIZE"), "TORCHELASTIC_RUN_ID"));
  EXPECT_EQ(place.rank, 9);
  EXPECT_EQ(place.local_rank, 0);
  EXPECT_EQ(place.num_local_ranks, 1);
  EXPECT_EQ(place.job, "-0");
}

TEST(RankPlaceTest, AWorldOfOneIsAlone) {
  expect_alone({{"WORLD_SIZE", "1"}, {"RANK", "0"}, {"MASTER_ADDR", "pod"}, {"MASTER_PORT", "23456"}});
  expect_alone({{"WORLD_SIZE", "1"}});
}

TEST(RankPlaceTest, MissingAndContradictingVariablesOfTorchrunAreNamed) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    EXPECT_CONTAINS(refusal(without(kTorchrun, name)), name);
  EXPECT_CONTAINS(refusal(kTorchrun + Set{{"RANK", "16"}}), "RANK expected a whole number from 0 to 15");
  EXPECT_CONTAINS(refusal({{"RANK", "1"}, {"WORLD_SIZE", "1"}}), "RANK");
  EXPECT_CONTAINS(refusal(kTorchrun + Set{{"LOCAL_WORLD_SIZE", "32"}}), "LOCAL_WORLD_SIZE is 32");
}

TEST(RankPlaceTest, SlurmGoesBeforeTorchrunAndTheyMustAgree) {
  EXPECT_EQ(place_of(kSlurm + Set{{"RANK", "5"}, {"WORLD_SIZE", "7"}}).source, "Slurm");
  EXPECT_EQ(place_of(kSlurm + Set{{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "other"}}).address, "gpu02");
  const std::string text = refusal(kSlurm + kTorchrun);
  EXPECT_CONTAINS(text, "SLURM_PROCID=5 and SLURM_STEP_NUM_TASKS=7 contradict RANK=9 and WORLD_SIZE=16");
  EXPECT_EQ(place_of(kSlurm + kTorchrun + kLaunch).source, "tycho launch");
}

TEST(RankPlaceTest, AddressPortAndTokenOfTychoWinOverTheScheduler) {
  const Set own = {{"TYCHO_ADDRESS", "10.1.1.1"}, {"TYCHO_PORT", "777"}, {"TYCHO_TOKEN", kToken}};
  for (const Set& base : {kSlurm, kTorchrun, without(without(kTorchrun, "MASTER_ADDR"), "MASTER_PORT")}) {
    const RankInfo place = place_of(base + own);
    EXPECT_GT(place.num_ranks, 1);
    EXPECT_EQ(place.address, "10.1.1.1");
    EXPECT_EQ(place.port, 777);
    EXPECT_EQ(place.token, kToken);
  }
  expect_alone(own);
}

TEST(RankPlaceTest, NothingThatOthersCanGuessIsAToken) {
  EXPECT_EQ(place_of(kSlurm).token, "");
  EXPECT_EQ(place_of(kTorchrun).token, "");
}

TEST(RankPlaceTest, ATokenThatIsTooShortIsRefusedAndNotShown) {
  for (const Set& base : {kSlurm, kTorchrun, kLaunch}) {
    const std::string text = refusal(base + Set{{"TYCHO_TOKEN", "hunter2hunter2"}});
    EXPECT_CONTAINS(text, "TYCHO_TOKEN expected a secret of 16 or more characters, got 14");
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  }
}

TEST(RankPlaceTest, AnEmptyVariableIsNotSet) {
  expect_alone({{"RANK", ""}, {"WORLD_SIZE", ""}, {"TYCHO_NUM_RANKS", ""}, {"SLURM_STEP_NUM_TASKS", ""}});
}

TEST(RankPlaceTest, ReadsTheVariablesOfTheProcess) {
  const Environment variable = process_environment();
  setenv("TYCHO_TEST_VARIABLE", "there", 1);
  EXPECT_EQ(variable("TYCHO_TEST_VARIABLE"), "there");
  unsetenv("TYCHO_TEST_VARIABLE");
  EXPECT_EQ(variable("TYCHO_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace tycho
