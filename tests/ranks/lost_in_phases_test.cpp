// Two ranks: one fails, is killed or is stopped in a callback of each event, while the other continues until
// it needs that rank: in the backward pass, in the sums of gradients, in an evaluation or in a save.
#include <atomic>
#include <functional>
#include <thread>

#include "tests/ranks/ranks_fixture.h"

namespace tycho {
namespace {

struct Case {
  std::string event;
  int rank = 0;  // the one that is lost
  std::string name() const { return event + "-" + std::to_string(rank); }
};

std::vector<Case> cases_of(const std::vector<std::string>& events) {
  std::vector<Case> cases;
  for (const std::string& event : events)
    for (const int rank : {0, 1}) cases.push_back({event, rank});
  return cases;
}

class LostInPhasesTest : public RanksTest {
 protected:
  /// Trains x.lua in a folder of the case; the rank runs `code` at the first or second of these events. Then
  /// `then`, and the codes of both.
  Outcome lose(const Case& one, const std::string& code, const std::string& then) const {
    const bool is_once = one.event == "setup" || one.event == "load" || one.event == "ckpt_saved";
    fs::create_directory(folder_ / one.name());
    write(recipe("r.max_duration, r.eval.every, r.ckpt.every = \"100000ba\", \"4ba\", \"4ba\"\n"
                 "local calls = 0\nr.callbacks.odd = t.everywhere { time_limit = \"600s\", " +
                 one.event + " = function(ctx)\n  if ctx.dist.rank ~= " + std::to_string(one.rank) +
                 " then return end\n  calls = calls + 1\n  if calls == " + (is_once ? "1" : "2") + " then " +
                 code + " end\nend }\n"),
          one.name() + "/x.lua");
    return here("cd " + one.name() + "; " + by_hand("x.lua run_dir=run", "x.lua run_dir=run", then));
  }
  std::string log_of(const Case& one, int rank) const {
    return text(one.name() + "/rank_" + std::to_string(rank) + ".log");
  }
  /// A shell line: waits until the rank is in its callback, which never ends, and has told the others so,
  /// then sends it a signal.
  static std::string strike(const Case& one, const std::string& signal) {
    const std::string rank = "rank_" + std::to_string(one.rank);
    return "for i in $(seq 1200); do grep -q 'here it stays' " + rank + ".log && break; sleep 0.05; done; " +
           "sleep 3; kill -" + signal + " $" + rank;
  }
  static void at_once(size_t num_threads, const std::vector<Case>& cases,
                      const std::function<void(const Case&)>& try_one) {
    std::atomic<size_t> next = 0;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < num_threads; ++i)
      threads.emplace_back([&] {
        for (size_t at; (at = next++) < cases.size();) {
          SCOPED_TRACE(cases[at].name());
          try_one(cases[at]);
        }
      });
  }

  static constexpr const char* kStays = "print(\"here it stays\") while true do end";
  static inline const std::vector<std::string> kAllPhases = {"setup",         "load",        "batch_start",
                                                             "after_forward", "grads_ready", "batch_end",
                                                             "eval_start",    "eval_end",    "ckpt_saved"};
};

TEST_F(LostInPhasesTest, AnErrorOfEitherRankEndsBothAndIsNamed) {
  at_once(2, cases_of(kAllPhases), [&](const Case& one) {
    EXPECT_CONTAINS(lose(one, "error(\"only here\")", "true").output, "codes 10 10");
    for (const int rank : {0, 1}) {
      const std::string log = log_of(one, rank);
      EXPECT_CONTAINS(log, one.event + " of \"odd\"");
      EXPECT_CONTAINS(log, "only here");
      if (rank != one.rank) {
        EXPECT_CONTAINS(log, "rank " + std::to_string(one.rank));
      }
    }
  });
}

TEST_F(LostInPhasesTest, ARankThatIsKilledIsNamedWithItsPhase) {
  at_once(2, cases_of(kAllPhases), [&](const Case& one) {
    EXPECT_CONTAINS(lose(one, kStays, strike(one, "KILL")).output,
                    one.rank == 0 ? "codes 137 143" : "codes 143 137");
    const std::string log = log_of(one, 1 - one.rank);
    EXPECT_CONTAINS(log, "[parallel] rank " + std::to_string(one.rank) + " (");
    EXPECT_CONTAINS(log, "in callback odd");
    EXPECT_CONTAINS(log, "has died");
  });
}

// Half a minute, in which the other waits: in backward, where it needs gradients, or at the step's end.
TEST_F(LostInPhasesTest, ARankThatIsStoppedIsNamedWithItsPhase) {
  at_once(4, cases_of({"after_forward", "grads_ready"}), [&](const Case& one) {
    const std::string rank = "rank_" + std::to_string(one.rank),
                      other = "rank_" + std::to_string(1 - one.rank);
    lose(one, kStays, strike(one, "STOP") + "; wait $" + other + "; echo code $? >left; kill -KILL $" + rank);
    EXPECT_EQ(text(one.name() + "/left"), "code 143\n");
    const std::string log = log_of(one, 1 - one.rank);
    EXPECT_CONTAINS(log, "[parallel] rank " + std::to_string(one.rank) + " (");
    EXPECT_CONTAINS(log, "in callback odd");
    EXPECT_CONTAINS(log, "has not answered for 30 s");
  });
}

}  // namespace
}  // namespace tycho
