// Mathematics written in Lua on the stand-in: as text that NVRTC's stand-in compiles, with the CPU's numbers
// and the bits of the built-in kernels, compiled once for all runs.
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

/// AdamW as docs/maths.md writes it, and a run with it or with the built-in one.
std::string with_adamw(bool own, const std::string& lines) {
  const std::string kind = own ? "mine" : "t.optim.adamw";
  return "local mine = t.optim.define {\n"
         "  name = \"mine\", defaults = { betas = { 0.9, 0.95 }, eps = 1e-8 },\n"
         "  state = { exp_avg = \"like\", exp_avg_sq = \"like\" },\n"
         "  update = function(p, g, s, h)\n"
         "    local b1, b2 = h.betas[1], h.betas[2]\n"
         "    s.exp_avg = s.exp_avg * b1 + g * (1 - b1)\n"
         "    s.exp_avg_sq = s.exp_avg_sq * b2 + g * g * (1 - b2)\n"
         "    local root = t.sqrt(s.exp_avg_sq) * (1 / t.sqrt(1 - b2 ^ h.step)) + h.eps\n"
         "    return p * (1 - h.lr * h.weight_decay) - s.exp_avg / root * (h.lr / (1 - b1 ^ h.step))\n"
         "  end }\n"
         "r.optimizer = " +
         kind + " { lr = 5e-3, betas = { 0.9, 0.95 }, eps = 1e-8, weight_decay = 0.1 }\n" + lines;
}

constexpr const char* kGpt2 =
    "gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, activation = "
    "t.act.define(function(x) return t.where(x:gt(0), x * x, 0.01 * x) + 0.1 * t.tanh(x) end) }";
constexpr const char* kLlama =
    "llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300 }";

class Programs : public StandinTest {
 protected:
  void SetUp() override {
    StandinTest::SetUp();
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }
  std::map<int64_t, double> losses(const std::string& name) const { return numbers(name, "loss"); }
};

TEST_F(Programs, TrainAsOnACpuWithTheBitsOfTheBuiltInOptimizer) {
  for (const char* lines :
       {"", "r.precision = \"bf16\"\n", "r.precision, r.master_weights = \"bf16\", \"stochastic\"\n"}) {
    SCOPED_TRACE(lines);
    for (const char* name : {"cpu", "cuda", "built_in"}) std::filesystem::remove_all(folder_ / name);
    write(recipe_of(kLlama, with_adamw(true, lines)));
    for (const char* device : {"cpu", "cuda"}) {
      const Outcome one = train(device, device);
      ASSERT_EQ(one.code, 0) << one.output;
    }
    expect_same_run("cpu", "cuda", *lines == 0 ? 2e-5 : 1e-2);
    write(recipe_of(kLlama, with_adamw(false, lines)));
    const Outcome built_in = train("built_in", "cuda");
    ASSERT_EQ(built_in.code, 0) << built_in.output;
    EXPECT_EQ(losses("cuda"), losses("built_in"));
  }
}

TEST_F(Programs, OfActivationsAndLossesTrainAsOnACpuOnOneRankAndOnTwo) {
  write(
      recipe_of(kGpt2, with_adamw(true,
                                  "r.loss = t.loss.define(function(z) return 0.9 * (z.lse - z.target) + 0.1 "
                                  "* (z.lse - z.mean) + 1e-4 * z.lse * z.lse end)\n")));
  for (const char* device : {"cpu", "cuda"}) {
    const Outcome one = train(device, device);
    ASSERT_EQ(one.code, 0) << one.output;
  }
  expect_same_run("cpu", "cuda", 2e-5);
  const Outcome two = run(2, "two", "device=cuda");
  ASSERT_EQ(two.code, 0) << two.output;
  expect_same_run("cpu", "two", 2e-5);
}

TEST_F(Programs, AreKeptForLaterRuns) {
  write(recipe_of(kLlama, with_adamw(true, "")));
  const auto programs = [&] {
    std::map<std::string, std::filesystem::file_time_type> found;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "cache/tycho/programs"))
      found[file.path()] = file.last_write_time();
    return found;
  };
  ASSERT_EQ(train("first", "cuda").code, 0);
  const auto made = programs();
  EXPECT_EQ(made.size(), 1u);
  const Outcome second = train("second", "cuda");
  ASSERT_EQ(second.code, 0) << second.output;
  EXPECT_EQ(programs(), made);
  EXPECT_EQ(losses("first"), losses("second"));
}

TEST_F(Programs, ThatTheGpuRefusesEndTheRun) {
  write(recipe_of(kLlama, with_adamw(true, "")));
  const Outcome outcome = train("run", "cuda", "", "export TYCHO_STANDIN_FAIL=cudaLibraryLoadData:1:200;");
  EXPECT_NE(outcome.code, 0);
  EXPECT_CONTAINS(outcome.output, "[run_program] expected a GPU that takes the compiled program");
}

}  // namespace
}  // namespace tycho
