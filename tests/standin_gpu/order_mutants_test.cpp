// Mistakes made on purpose in runs whose transfers overlap with work: a wait left out, a record made early, a
// pinned buffer used again early. The checker of the stand-in must report each of them, or prove that the
// wait was not needed.
#include <map>
#include <optional>
#include <utility>

#include "tests/standin_gpu/runtime/order.h"
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

using standin::Action;
using standin::Mutant;
using standin::Order;

/// Waits and records without which the whole run has no pair of uses in the wrong order, and why.
constexpr std::pair<const char*, const char*> kNotNeeded[] = {
    {"the wait of cudaStreamSynchronize of ProfilerStep",
     "losses go to ordinary memory, and a copy there is done when its call returns"},
    {"the wait of cudaStreamSynchronize of checkpoint",
     "item() reads a number in memory of LibTorch's own, which nobody else fills"},
    {"the wait of cudaStreamWaitEvent of embedding forward",
     "transfers of weights follow each other on one stream: an earlier wait ordered what they read and "
     "replace"},
    {"the wait of cudaStreamWaitEvent of block ",
     "likewise; the ring's keys were ordered by its previous step; codes and the rest of a block arrive "
     "together"},
    {"the record of an event of ",
     "the stream's newest operation touches nothing that the waiting stream uses"},
};

class Mutants : public StandinTest {
 protected:
  static constexpr int kStep =
      3;  // of steps 1 to 6: everything has been made, and what follows sees mistakes

  /// Trains on four ranks. Returns what rank `rank` did.
  std::vector<Action> traced(const std::string& name, const std::string& pins, int rank) const {
    const Outcome outcome =
        here("export TYCHO_STANDIN_GPUS=4 TYCHO_STANDIN_TRACE=" + name +
             "; tycho launch -n 4 run x.lua device=cuda run_dir=" + name + "_run " + pins);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::vector<Action> actions;
    std::ifstream in(folder_ / (name + "." + std::to_string(rank)));
    for (std::string line; std::getline(in, line);) actions.push_back(standin::action_of(line));
    return actions;
  }

  /// Does a run again, with a mutant.
  struct Again {
    std::optional<std::string> found;
    Order order;
  };
  static Again again(const std::vector<Action>& actions, Mutant mutant) {
    Again result = {{}, Order(mutant)};
    for (const Action& action : actions) {
      result.found = result.order.apply(action);
      if (result.found) break;
    }
    return result;
  }

  /// Makes every mistake of a kind in the step. Each is reported, changes no clock, or is one of kNotNeeded.
  static void expect_reported(const std::vector<Action>& actions, Mutant::Kind kind) {
    std::map<std::string, int> left;
    int num_reported = 0, num_without_effect = 0, num_not_needed = 0;
    for (long number = 1;; ++number) {
      const Again one = again(actions, {kind, kStep, number});
      const std::string what = one.order.changed();
      if (what.empty()) break;
      if (one.found) {
        ++num_reported;
      } else if (one.order.changed_nothing()) {
        ++num_without_effect;
      } else {
        EXPECT_NE(reason(what), nullptr) << what << " was not missed";
        ++num_not_needed, ++left[what];
      }
    }
    std::printf("[  mutants ] %d reported, %d change no clock, %d are not needed\n", num_reported,
                num_without_effect, num_not_needed);
    for (const auto& [what, times] : left) std::printf("[  mutants ] %d x %s\n", times, what.c_str());
    EXPECT_GT(num_reported, num_not_needed);
  }

 private:
  static const char* reason(const std::string& what) {
    for (const auto& [begin, text] : kNotNeeded)
      if (what.starts_with(begin)) return text;
    return nullptr;
  }
};

TEST_F(Mutants, OfFullyShardedStages) {
  const auto actions =
      traced("pp", "max_duration=6ba ckpt.every=2ba parallel.dp_shard=2 parallel.pp=2 micro_batch=1sp", 0);
  ASSERT_FALSE(again(actions, {}).found);
  expect_reported(actions, Mutant::Kind::kNoWait);
  expect_reported(actions, Mutant::Kind::kEarlyRecord);
}

TEST_F(Mutants, OfFullyShardedContext) {
  const auto actions =
      traced("cp", "max_duration=6ba ckpt.every=2ba parallel.dp_shard=2 parallel.cp=2 micro_batch=1sp", 3);
  ASSERT_FALSE(again(actions, {}).found);
  expect_reported(actions, Mutant::Kind::kNoWait);
  expect_reported(actions, Mutant::Kind::kEarlyRecord);
}

TEST_F(Mutants, OfCodesThatAreGathered) {
  const auto actions = traced("codes",
                              "max_duration=6ba ckpt.every=2ba parallel.dp_shard=4 "
                              "micro_batch=1sp precision=bf16 fp8.recipe=tensorwise fp8.gather=true",
                              0);
  ASSERT_FALSE(again(actions, {}).found);
  expect_reported(actions, Mutant::Kind::kNoWait);
  expect_reported(actions, Mutant::Kind::kEarlyRecord);
}

// The program itself ends at the first mistake, and names both places.
TEST_F(Mutants, EndTheProgramThatMakesThem) {
  const std::string launch =
      "tycho launch -n 2 run x.lua device=cuda parallel.dp_shard=2 max_duration=4ba run_dir=";
  const Outcome whole = here(launch + "whole");
  EXPECT_EQ(whole.code, 0) << whole.output;
  const Outcome outcome = here("export TYCHO_STANDIN_MUTANT=wait:3:1; " + launch + "mutant");
  EXPECT_NE(outcome.code, 0);
  EXPECT_CONTAINS(outcome.output, "[standin] nothing orders two uses of the bytes");
  EXPECT_CONTAINS(outcome.output, ": a write by adamw_step of ");
  EXPECT_CONTAINS(outcome.output, " in step 2, and a read by ncclAllGather of ");
}

// A query that is answered "done" too early makes LibTorch hand out a pinned buffer again from which a copy
// to the device may still read: the host's next copy into it is the mistake. A later query than the first of
// a step frees a buffer that nobody asks for before the host waits: such a run has no mistake, and ends well.
TEST_F(Mutants, OfPinnedBuffersThatAreUsedAgainEarly) {
  int num_reported = 0;
  for (const char* number : {"1", "2", "3"}) {
    const Outcome outcome =
        here(std::string("export TYCHO_STANDIN_MUTANT=done:3:") + number +
             "; tycho run x.lua device=cuda micro_batch=1sp max_duration=4ba run_dir=run" + number);
    if (outcome.code == 0) continue;
    ++num_reported;
    EXPECT_CONTAINS(outcome.output, "a read by cudaMemcpyAsync");
    EXPECT_CONTAINS(outcome.output, "and a write by a copy by the CPU");
  }
  std::printf("[  mutants ] %d of 3 reported\n", num_reported);
  EXPECT_GT(num_reported, 0);
}

}  // namespace
}  // namespace tycho
