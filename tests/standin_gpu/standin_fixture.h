// What tests on the stand-in for a GPU share: TYCHO_PROGRAM preloads it.
#pragma once
#include <cstdio>
#include <cstdlib>

#include "tests/ranks/ranks_fixture.h"

namespace tycho {

/// Whatever a test runs, the stand-in looks for uses of memory that nothing orders (runtime/order.h). How
/// many it found in order is printed, so that a checker that sees nothing does not pass.
class StandinTest : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    setenv("TYCHO_STANDIN_PAIRS", (folder_ / "pairs").c_str(), 1);
  }
  void TearDown() override {
    std::ifstream in(folder_ / "pairs");
    int64_t streams = 0, pairs = 0, host_pairs = 0, all = 0, all_host = 0;
    while (in >> streams >> pairs >> host_pairs) {
      EXPECT_TRUE(streams < 2 || pairs > 0) << "work on " << streams << " streams, and no pair of uses";
      all += pairs, all_host += host_pairs;
    }
    std::printf("[   pairs  ] %ld of two streams, %ld of a stream and the host\n", static_cast<long>(all),
                static_cast<long>(all_host));
    unsetenv("TYCHO_STANDIN_PAIRS");
    RanksTest::TearDown();
  }
  static std::string recipe_of(const std::string& model, const std::string& lines = "") {
    return recipe("r.max_duration = \"12ba\"\nr.model = t.model." + model + "\n" + lines);
  }
  /// Of `on_cpu` and `on_gpu`, runs of x.lua: the same losses and evaluations.
  void expect_same_run(const std::string& on_cpu, const std::string& on_gpu, double tolerance) const {
    expect_close(numbers(on_gpu, "loss"), numbers(on_cpu, "loss"), tolerance);
    const std::vector<Json> a = events(on_gpu, "eval"), b = events(on_cpu, "eval");
    ASSERT_EQ(a.size(), b.size());
    const auto loss = [](const Json& event) { return event.at("facts").at("loss").get<double>(); };
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(loss(a[i]) / loss(b[i]), 1, tolerance);
  }
  /// Trains x.lua on one rank.
  Outcome train(const std::string& name, const std::string& device, const std::string& pins = "",
                const std::string& variables = "") const {
    return here(variables + " tycho run x.lua device=" + device + " run_dir=" + name + " " + pins);
  }
  /// Bytes that `tycho plan x.lua` is certain of, for a GPU.
  double certain_bytes(const std::string& pins) const {
    const Outcome planned = here("tycho plan x.lua device=cuda --json " + pins);
    EXPECT_EQ(planned.code, 0) << planned.output;
    const Json plan = parse_json(planned.output, "plan");
    double bytes = 0;
    for (const Json& item : plan.at("memory"))
      if (!item.at("is_estimate") && item.at("name") != "checkpoint copy")
        bytes += item.at("num_bytes").get<double>();
    return bytes;
  }
  /// How often a run called a function of the runtime.
  std::map<std::string, int64_t> calls_of(const std::string& name, const std::string& pins) const {
    const Outcome outcome = train(name, "cuda", pins, "export TYCHO_STANDIN_CALLS=" + name + ".calls;");
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return calls_in(name + ".calls.0");
  }
  /// What the stand-in wrote for a rank, with TYCHO_STANDIN_CALLS.
  std::map<std::string, int64_t> calls_in(const std::string& file) const {
    std::map<std::string, int64_t> calls;
    std::ifstream in(folder_ / file);
    for (std::string line; std::getline(in, line);) {
      const size_t space = line.rfind(' ');
      calls[line.substr(0, space)] = std::stoll(line.substr(space + 1));
    }
    return calls;
  }
};

}  // namespace tycho
