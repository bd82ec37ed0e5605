// Vocabularies whose rows are no multiple of 64: GPUs compute with zero rows after them, which no checkpoint
// has, so a run goes on elsewhere.
#include <string>
#include <tuple>

#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

struct Mesh {
  int ranks;
  const char* pins;
};

class Vocabulary : public StandinTest {
 protected:
  Outcome train_on(const std::string& name, const std::string& device, const Mesh& mesh,
                   const std::string& pins = "") const {
    return run(mesh.ranks, name, "device=" + device + " " + (device == "cuda" ? mesh.pins : "") + " " + pins);
  }

  /// A run that begins on GPUs and ends on a CPU, and one the other way, train what one on a CPU does.
  void expect_same_everywhere(const std::string& model, const Mesh& mesh, const std::string& lines,
                              double tolerance) {
    SCOPED_TRACE(model + mesh.pins);
    write(recipe_of(model, "r.max_duration = \"6ba\"\n" + lines));
    for (const char* name : {"whole", "to_cpu", "to_gpu"}) fs::remove_all(folder_ / name);
    const Mesh one = {1, ""};
    for (const auto& [name, first, second] :
         {std::tuple("whole", "cpu", "cpu"), {"to_cpu", "cuda", "cpu"}, {"to_gpu", "cpu", "cuda"}})
      for (const std::string device : {first, second}) {
        const Outcome part = train_on(name, device, device == "cuda" ? mesh : one,
                                      device == first && first != second ? "max_duration=3ba" : "");
        ASSERT_EQ(part.code, 0) << part.output;
      }
    const auto last_eval = [&](const char* name) {
      return events(name, "eval").back().at("facts").at("loss").get<double>();
    };
    for (const char* name : {"to_cpu", "to_gpu"}) {
      expect_close(numbers("whole", "loss"), numbers(name, "loss"), tolerance);
      expect_close(numbers("whole", "grad_norm"), numbers(name, "grad_norm"), 50 * tolerance);
      EXPECT_NEAR(last_eval("whole") / last_eval(name), 1, tolerance);
    }
  }
};

// 385 rows: two ranks have 193, which become 256, and 192, which stay.
const std::string kTied = "gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 385, max_seq_len = 32 }";
const std::string kUntied =
    "llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 385 }";

TEST_F(Vocabulary, OfAnySizeGoesFromGpusToACpuAndBackOnAnyMesh) {
  expect_same_everywhere(kTied, {2, "parallel.tp=2"}, "r.ema.decay = 0.9\n", 2e-5);
  expect_same_everywhere(kTied, {2, "parallel.pp=2"}, "", 2e-5);
}

// Weights below adapters are read into memory with zero rows, and are in no checkpoint.
TEST_F(Vocabulary, OfAnySizeTakesAdapters) {
  write(recipe_of(kUntied));
  ASSERT_EQ(train("base", "cpu", "max_duration=1ba").code, 0);
  const std::string weights = "r.model.weights = \"" + (folder_ / "base").string() + "\"\n";
  expect_same_everywhere(kUntied, {2, "parallel.tp=2"}, weights + "r.lora = { rank = 4 }\n", 2e-5);
}

// Losses of statistics take other kernels; Muon updates whole matrices; a defined optimizer may move zeros.
TEST_F(Vocabulary, OfAnySizeTrainsWithEveryLossAndOptimizer) {
  expect_same_everywhere(kUntied, {2, "parallel.tp=2"},
                         "r.loss = t.loss.define(function(z) return 0.9 * (z.lse - z.target) + 0.1 "
                         "* (z.lse - z.mean) + 1e-4 * z.lse * z.lse end)\n",
                         2e-5);
  expect_same_everywhere(kTied, {2, "parallel.dp_shard=2"},
                         "r.optimizer = t.optim.define { name = \"mine\", update = function(p, g, s, h) "
                         "return p - h.lr * g + 1e-3 * h.lr end } { lr = 0.05 }\n",
                         2e-5);
  expect_same_everywhere(kTied, {1, ""}, "r.precision, r.optimizer = \"bf16\", t.optim.muon { lr = 0.005 }\n",
                         1e-2);
}

}  // namespace
}  // namespace tycho
