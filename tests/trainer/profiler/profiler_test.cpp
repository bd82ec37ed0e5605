// Traces of runs: the steps that were asked for, what happens in them, and numbers that stay the same.
#include "trainer/profiler/profiler.h"

#include <filesystem>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/run/open_session.h"

namespace tycho {
namespace {

class ProfilerTest : public RunTest {
 protected:
  ProfilerTest() { write_data(64, config_.seq_len, 64); }
  static Duration steps(double n) { return {n, DurationUnit::kBatch}; }
  std::string trace_path(int first, int last) const {
    return fmt::format("{}/profile/rank0.steps-{}-{}.pt.trace.json", run_dir(), first, last);
  }
  /// Complete events of a trace.
  static std::vector<Json> events(const std::string& path) {
    std::vector<Json> found;
    const Json trace = parse_json(read_file(path), path);
    for (const Json& event : trace.at("traceEvents"))
      if (event.value("ph", "") == "X") found.push_back(event);
    return found;
  }
  static std::vector<Json> named(const std::vector<Json>& all, const std::string& name) {
    std::vector<Json> found;
    for (const Json& event : all)
      if (event.value("name", "") == name) found.push_back(event);
    return found;
  }
  static bool inside(const Json& inner, const Json& outer) {
    const auto begin = [](const Json& event) { return event.at("ts").get<double>(); };
    const auto end = [&](const Json& event) { return begin(event) + event.at("dur").get<double>(); };
    return begin(inner) >= begin(outer) && end(inner) <= end(outer);
  }
  size_t num_traces() const {
    size_t n = 0;
    if (std::filesystem::exists(run_dir() + "/profile"))
      for (const auto& entry : std::filesystem::directory_iterator(run_dir() + "/profile"))
        n += entry.exists();
    return n;
  }
};

TEST_F(ProfilerTest, TracesHoldTheStepsOfTheSchedule) {
  config_.profile = {.active = steps(2), .wait = steps(3), .warmup = steps(1), .repeat_count = 2};
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(num_traces(), 2u);
  for (const int first : {5, 11}) {
    const std::vector<Json> all = events(trace_path(first, first + 1));
    for (const int step : {first - 1, first + 2})
      EXPECT_TRUE(named(all, fmt::format("ProfilerStep#{}", step)).empty()) << step;
    const std::vector<Json> here = named(all, fmt::format("ProfilerStep#{}", first));
    ASSERT_EQ(here.size(), 1u);
    EXPECT_EQ(named(all, fmt::format("ProfilerStep#{}", first + 1)).size(), 1u);
    // Two micro-batches in each of two steps.
    for (const char* name :
         {"embedding forward", "block 0 forward", "block 1 forward", "head forward and backward",
          "block 1 backward", "block 0 backward", "embedding backward"})
      EXPECT_EQ(named(all, name).size(), 4u) << name;
    for (const char* name : {"data wait", "gradient norm", "optimizer"}) {
      const std::vector<Json> ranges = named(all, name);
      ASSERT_EQ(ranges.size(), 2u) << name;
      EXPECT_TRUE(inside(ranges[0], here[0]) != inside(ranges[1], here[0])) << name;
    }
    EXPECT_FALSE(named(all, "aten::empty").empty()) << "ATen's functions are recorded";
  }
}

TEST_F(ProfilerTest, OurOwnKernelsHaveNamesInsideOfWhatCallsThem) {
  config_.profile = {.active = steps(1), .repeat_count = 1};
  EXPECT_EQ(run(), 0);
  const std::vector<Json> all = events(trace_path(2, 2));
  // Two micro-batches, two blocks with two norms each, and the head's.
  EXPECT_EQ(named(all, "tycho::rms_norm").size(), 2u * (2 * 2 + 1));
  EXPECT_EQ(named(all, "tycho::rms_norm_backward").size(), 2u * (2 * 2 + 1));
  for (const char* name : {"tycho::attention", "tycho::attention_backward", "tycho::gated_activation",
                           "tycho::gated_activation_backward"})
    EXPECT_EQ(named(all, name).size(), 2u * 2) << name;
  for (const char* name : {"tycho::embedding", "tycho::embedding_backward", "tycho::rope",
                           "tycho::cross_entropy", "tycho::add_sum_of_squares", "tycho::adamw_step"})
    EXPECT_FALSE(named(all, name).empty()) << name;
  const Json block = named(all, "block 0 forward").at(0), step = named(all, "optimizer").at(0);
  EXPECT_TRUE(inside(named(all, "tycho::attention").at(0), block));
  EXPECT_TRUE(inside(named(all, "tycho::adamw_step").at(0), step));
}

TEST_F(ProfilerTest, OnlyBlocksThatComputeAgainSaySo) {
  config_.profile = {.active = steps(1), .repeat_count = 1};
  EXPECT_EQ(run(), 0);
  for (const Json& event : events(trace_path(2, 2)))
    EXPECT_EQ(event.value("name", "").find("recompute"), std::string::npos) << event;
  config_.run_dir = dir_ / "again";
  config_.recompute = {.mode = Recompute::kFull, .every = 2};
  EXPECT_EQ(run(), 0);
  const std::vector<Json> all = events(trace_path(2, 2));
  EXPECT_EQ(named(all, "block 0 recompute").size(), 2u);
  EXPECT_TRUE(named(all, "block 1 recompute").empty());
}

TEST_F(ProfilerTest, ARunIsTheSameWithAndWithoutAProfile) {
  EXPECT_EQ(run(), 0);
  const auto plain = newest_tensors();
  const auto plain_losses = losses();
  config_.run_dir = dir_ / "profiled";
  config_.profile = {.active = steps(3), .skip_first = steps(2), .shapes = true, .memory = true};
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(num_traces(), 1u);
  EXPECT_EQ(losses(), plain_losses);
  EXPECT_TRUE(newest_tensors() == plain);
}

TEST_F(ProfilerTest, AnEndWithinAWindowWritesWhatThereIs) {
  config_.profile = {.active = steps(9), .wait = steps(7)};
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(named(events(trace_path(9, 12)), "optimizer").size(), 4u);
}

TEST_F(ProfilerTest, OtherRanksAndOtherStepsRecordNothing) {
  config_.profile = {.active = steps(1), .ranks = {1}};
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(num_traces(), 0u);
}

TEST_F(ProfilerTest, ItsPhaseIsThatOfTheNextStep) {
  config_.profile = {.active = steps(2), .wait = steps(1), .warmup = steps(1), .repeat_count = 1};
  const auto session = open_session(request(), nullptr, stop_);
  std::vector<std::string> phases;
  for (int i = 0; i < 6; ++i) {
    phases.push_back(session->profile_state().phase);
    session->step(1);
  }
  EXPECT_EQ(phases, (std::vector<std::string>{"wait", "warmup", "active", "active", "off", "off"}));
  EXPECT_EQ(session->profile_state().path, trace_path(3, 4));
}

TEST_F(ProfilerTest, APromptRecordsWhatItCalls) {
  const auto session = open_session(request(), nullptr, stop_);
  session->step(1);
  EXPECT_EQ(session->profile_state().phase, "off");
  EXPECT_EQ(session->profile_state().path, "");
  session->profile_begin();
  EXPECT_EQ(session->profile_state().phase, "active");
  EXPECT_THROW(session->profile_begin(), Error);
  session->step(2);
  const Json profile = session->profile_end();
  EXPECT_EQ(profile.at("path"), trace_path(2, 3));
  EXPECT_EQ(session->profile_state().phase, "off");
  EXPECT_EQ(session->profile_state().path, trace_path(2, 3));
  EXPECT_EQ(named(events(trace_path(2, 3)), "optimizer").size(), 2u);
  const auto& ranges = profile.at("ranges");
  const auto optimizer = std::find_if(ranges.begin(), ranges.end(),
                                      [](const Json& range) { return range.at("name") == "optimizer"; });
  ASSERT_NE(optimizer, ranges.end());
  EXPECT_EQ(optimizer->at("calls"), 2);
  EXPECT_GE(ranges.front().at("seconds"), ranges.back().at("seconds"));
  session->command(make_command("profile", {"2ba"}, nullptr, "repl"));
  session->step(3);
  EXPECT_EQ(named(events(trace_path(4, 5)), "optimizer").size(), 2u);
}

}  // namespace
}  // namespace tycho
