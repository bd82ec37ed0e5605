// Tests of several reporters as one, failing ones included.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

/// Writes down what it is told, and throws while `*broken`.
class Listener : public Reporter {
 public:
  Listener(std::vector<std::string>& heard, const bool& broken) : heard_(heard), broken_(broken) {}
  void run_start(const RunInfo& run) override { hear("start " + run.run_name); }
  void step(const StepMetrics& m, bool record) override { hear(fmt::format("step {} {}", m.step, record)); }
  void event(const std::string& kind, const std::string& text, const Json&) override {
    hear(kind + ": " + text);
  }
  void finish(const std::string& reason) override { hear("finish " + reason); }
  void run_end(const std::string& reason, std::optional<ExitCode> /*failure*/) override {
    hear("end " + reason);
  }

 private:
  void hear(const std::string& what) {
    if (broken_) fail(ExitCode::kStorage, "[file] cannot write: disk full");
    heard_.push_back(what);
  }
  std::vector<std::string>& heard_;
  const bool& broken_;
};

class TeeTest : public testing::Test {
 protected:
  TeeTest() {
    std::vector<std::unique_ptr<Reporter>> reporters;
    reporters.push_back(std::make_unique<Listener>(first_, first_broken_));
    reporters.push_back(std::make_unique<Listener>(second_, second_broken_));
    tee_ = make_tee(std::move(reporters));
  }
  using Heard = std::vector<std::string>;
  Heard first_, second_;
  bool first_broken_ = false, second_broken_ = false;
  std::unique_ptr<Reporter> tee_;
};

TEST_F(TeeTest, TellsAll) {
  tee_->run_start(some_run());
  tee_->step(some_step(7), true);
  tee_->event("stop", "why", {});
  tee_->run_end("done", {});
  const Heard all = {"start mpt-125m", "step 7 true", "stop: why", "finish done", "end done"};
  EXPECT_EQ(first_, all);
  EXPECT_EQ(second_, all);
}

TEST_F(TeeTest, NoReporterIsShownASecret) {
  /// Keeps all that it is told, as text.
  struct Keeper : Reporter {
    explicit Keeper(std::string& told) : told(told) {}
    void run_start(const RunInfo& run) override { told += fmt::format("{} ", fmt::join(run.pins, ",")); }
    void metric(int64_t, const std::string& name, double) override { told += name + " "; }
    void event(const std::string&, const std::string& text, const Json& facts) override {
      told += text + " " + facts.dump() + " ";
    }
    void run_end(const std::string& reason, std::optional<ExitCode> /*failure*/) override { told += reason; }
    std::string& told;
  };
  register_secret("canary-of-tee");
  std::string told;
  std::vector<std::unique_ptr<Reporter>> reporters;
  reporters.push_back(std::make_unique<Keeper>(told));
  const std::unique_ptr<Reporter> tee = make_tee(std::move(reporters));
  RunInfo run = some_run();
  run.pins = {"a=canary-of-tee", "b=http://me:pw@h"};
  tee->run_start(run);
  tee->metric(1, "m.canary-of-tee", 2);
  tee->event("text", "canary-of-tee!", {{"canary-of-tee", {"canary-of-tee"}}});
  tee->run_end("failed: canary-of-tee", {});
  EXPECT_EQ(told, R"(a=***,b=http://***@h m.*** ***! {"***":["***"]} failed: ***)");
}

TEST_F(TeeTest, WarnsOnceOfAReporterThatFailsAndGoesOn) {
  first_broken_ = true;
  tee_->step(some_step(1), true);
  tee_->step(some_step(2), true);
  first_broken_ = false;
  tee_->step(some_step(3), true);
  first_broken_ = true;
  tee_->step(some_step(4), true);
  EXPECT_EQ(first_, (Heard{"step 3 true"}));
  EXPECT_EQ(second_, (Heard{"step 1 true", "warning: [file] cannot write: disk full", "step 2 true",
                            "step 3 true", "step 4 true", "warning: [file] cannot write: disk full"}));
}

TEST_F(TeeTest, SurvivesWhenAllFail) {
  first_broken_ = second_broken_ = true;
  EXPECT_NO_THROW(tee_->step(some_step(1), true));
  EXPECT_NO_THROW(tee_->run_end("done", std::nullopt));
}

TEST_F(TeeTest, DoesNotLetARunBeginThatCannotBeRecorded) {
  first_broken_ = true;
  EXPECT_THROW(tee_->run_start(some_run()), Error);
}

}  // namespace
}  // namespace tycho
