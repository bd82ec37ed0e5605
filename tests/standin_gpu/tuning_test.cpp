// Tuned products of a run: rank 0's choice for all ranks, kept for the next run, and part of the route.
#include <algorithm>

#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

class Tuning : public StandinTest {
 protected:
  /// Two ranks of x.lua, whose cuBLASLt offers four algorithms for every form.
  Outcome tuned(const std::string& name, const std::string& pins = "",
                const std::string& mode = "many") const {
    return here("export TYCHO_STANDIN_LT=" + mode +
                " XDG_CACHE_HOME=$PWD/kept; tycho launch -n 2 run x.lua device=cuda "
                "run_dir=" +
                name + " " + pins);
  }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "kept/tycho/products")) files.push_back(entry);
    return files;
  }
  std::string products(const std::string& run) const {
    std::string newest;
    for (const auto& entry : fs::directory_iterator(folder_ / run / "checkpoints"))
      if (const std::string name = entry.path().filename(); name.starts_with("step-"))
        newest = std::max(newest, name);
    const std::string commit = text(run + "/checkpoints/" + newest + "/COMMIT"), key = "cuBLASLt ";
    const size_t at = commit.find(key);
    return at == std::string::npos ? "" : commit.substr(at, commit.find('"', at) - at);
  }
};

TEST_F(Tuning, ChoosesInTheFirstStepAndKeepsTheChoice) {
  const Outcome plain = tuned("plain", "max_duration=6ba"),
                first = tuned("first", "products.tuned=true max_duration=6ba");
  ASSERT_EQ(plain.code, 0) << plain.output;
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_TRUE(events("plain", "products").empty());
  const std::vector<Json> chosen = events("first", "products");
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_GT(chosen[0].at("facts").at("forms").get<int64_t>(), 10);
  EXPECT_CONTAINS(products("first"), ", tuned " + chosen[0].at("facts").at("hash").get<std::string>());
  EXPECT_NE(numbers("first", "loss"), numbers("plain", "loss")) << "other algorithms add in another order";
  expect_close(numbers("first", "loss"), numbers("plain", "loss"));
  ASSERT_EQ(kept().size(), 1u);
  const Outcome again = tuned("again", "products.tuned=true max_duration=6ba");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_TRUE(events("again", "products").empty()) << "nothing is left to time";
  EXPECT_EQ(numbers("again", "loss"), numbers("first", "loss"))
      << "the first step has the chosen algorithms too";
  EXPECT_EQ(products("again"), products("first"));
}

TEST_F(Tuning, AnotherModelChoosesForItselfAndADamagedFileIsMadeAgain) {
  ASSERT_EQ(tuned("first", "products.tuned=true max_duration=2ba").code, 0);
  ASSERT_EQ(tuned("wider", "products.tuned=true max_duration=2ba model.ffn_width=96").code, 0);
  ASSERT_EQ(kept().size(), 2u);
  for (const fs::path& file : kept()) std::ofstream(file, std::ios::app) << "x";
  const Outcome again = tuned("again", "products.tuned=true max_duration=2ba");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(events("again", "products").size(), 1u);
  EXPECT_EQ(numbers("again", "loss"), numbers("first", "loss"));
}

TEST_F(Tuning, AResumeWithOtherAlgorithmsSaysThatBitsMayDiffer) {
  ASSERT_EQ(tuned("run", "products.tuned=true max_duration=2ba").code, 0);
  const Outcome same = tuned("run", "products.tuned=true max_duration=4ba");
  ASSERT_EQ(same.code, 0) << same.output;
  EXPECT_EQ(same.output.find("the route has changed"), std::string::npos) << same.output;
  const Outcome other = tuned("run", "max_duration=6ba");
  ASSERT_EQ(other.code, 0) << other.output;
  EXPECT_CONTAINS(other.output, "the route has changed");
}

// Recomputation takes the algorithms of forward: another epilogue would have others.
TEST_F(Tuning, RecomputationKeepsTheBitsOfAFusedGelu) {
  write(recipe_of("gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32 }",
                  "r.precision = \"bf16\"\n"));
  for (const char* mode : {"none", "full"}) {
    const Outcome outcome =
        tuned(mode, std::string("products.tuned=true max_duration=4ba recompute.mode=") + mode);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
  EXPECT_EQ(numbers("full", "loss"), numbers("none", "loss"));
}

// Products are timed in the memory of the activations, with the workspace that the plan counts.
TEST_F(Tuning, TakesNoMemoryOfItsOwn) {
  write(recipe_of("llama { width = 32, layers = 2, heads = 4, ffn_width = 8192, vocab_size = 300 }"));
  const auto peak = [&](const std::string& name, const std::string& pins) {
    const Outcome outcome = tuned(name, "max_duration=2ba " + pins);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    const auto bytes = numbers(name, "memory_bytes");
    return bytes.empty() ? 0 : bytes.rbegin()->second;
  };
  const double kWorkspace = 32 << 20, plain = peak("plain", "");
  EXPECT_LE(peak("first", "products.tuned=true"), plain + kWorkspace);
}

TEST_F(Tuning, OfALibraryWithOneAlgorithmChangesNothing) {
  ASSERT_EQ(tuned("plain", "max_duration=2ba", "one").code, 0);
  ASSERT_EQ(tuned("tuned", "max_duration=2ba products.tuned=true", "one").code, 0);
  EXPECT_EQ(numbers("tuned", "loss"), numbers("plain", "loss"));
}

}  // namespace
}  // namespace tycho
