// Bits per byte of runs: of packed and weighted conversations by hand, on every mesh, and where they are
// told.
#include <filesystem>
#include <fstream>
#include <numbers>

#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/run/evaluate_checkpoint.h"

namespace tycho {
namespace {

class BitsPerByteRun : public ShardedRun {
 protected:
  BitsPerByteRun() {
    llama().vocab_size = 512;
    config_.tokenizer = std::string(TYCHO_GOLDEN_DIR) + "/tokenizer/lines.json";
    config_.max_duration = {1, DurationUnit::kBatch};
    config_.scheduler.value = ConstantConfig{};
    config_.seq_len = 64;
    config_.global_batch = {4, DurationUnit::kSample};
    config_.train_data.value = rows("train", {1});
  }

  /// Writes 23 prompts with responses, whose weights repeat, and returns the set of them.
  ChatConfig rows(const std::string& name, const std::vector<double>& weights) {
    ChatConfig data;
    data.path = dir_ / (name + ".jsonl");
    data.weights = "weight";
    data.pack = true;
    std::ofstream out(data.path);
    const char* words[] = {"tensor", "shard", "gradient", "größe", "rates", "kernel", "model's"};
    for (size_t i = 0; i < 23; ++i) {
      std::string text;
      for (size_t w = 0; w <= i % 5; ++w) text += std::string(" ") + words[(i + w) % 7];
      const double weight = weights[i % weights.size()];
      out << Json{{"prompt", "count" + text}, {"response", text}, {"weight", weight}}.dump() << "\n";
      bytes_[name] += weight * static_cast<double>(text.size());
    }
    return data;
  }

  EvalResults on(const TestMesh& mesh) {
    config_.run_dir = dir_ / ("eval-" + mesh.name());
    std::filesystem::remove_all(run_dir());
    EvalResults results;
    expect_all_well(on_mesh(mesh, [&](TrainingSession& session) {
      const auto own = session.evaluate("");
      if (session.facts().rank == 0) results = *own;
    }));
    return results;
  }
  std::vector<double> curve(const std::string& metric) const {
    std::vector<double> found;
    for (const Json& line : lines("metrics.jsonl"))
      if (line.contains(metric)) found.push_back(line.at(metric));
    return found;
  }

  std::map<std::string, double> bytes_;  // of all responses of a set, each times its weight
};

TEST_F(BitsPerByteRun, CountsTheBytesOfLearnedTextAndWeighsThemAsItsLosses) {
  config_.eval_data["even"].value = rows("even", {1, 0});
  config_.eval_data["odd"].value = rows("odd", {0, 1});
  config_.eval_data["mixed"].value = rows("mixed", {3, 0.5});
  EvalResults results = on(kOneRank);
  for (const auto& [name, result] : results) {
    EXPECT_DOUBLE_EQ(result.sums.bytes, bytes_.at(name)) << name << ": the end of text has none";
    EXPECT_LT(result.sums.nats, result.sums.loss) << name << ": the loss of the end of text is left out";
    EXPECT_DOUBLE_EQ(*result.bits_per_byte(), result.sums.nats / std::numbers::ln2 / result.sums.bytes);
  }
  const double mixed = 3 * results.at("even").sums.nats + 0.5 * results.at("odd").sums.nats;
  EXPECT_NEAR(results.at("mixed").sums.nats / mixed, 1, 1e-6);
  const EvalResult total = total_of(results);
  EXPECT_DOUBLE_EQ(total.sums.bytes, bytes_["even"] + bytes_["odd"] + bytes_["mixed"]);
}

TEST_F(BitsPerByteRun, AreThoseOfOneRankOnEveryMesh) {
  config_.eval_data["mixed"].value = rows("mixed", {3, 0.5, 0});
  ChatConfig trimmed = rows("trimmed", {1, 2});
  trimmed.pack = false, trimmed.trim_padding = true;
  config_.eval_data["trimmed"].value = trimmed;
  const EvalResults one = on(kOneRank);
  TestMesh whole = kTp, cp = kOneRank, ring = kOneRank, pp = kOneRank, all = kTp;
  whole.sequence = false, cp.cp = 2, ring.cp = 2, ring.ring = true, pp.pp = 2, all.cp = 2, all.pp = 2;
  for (const TestMesh& mesh : {kTwo, TestMesh{2, 1}, kTwoByTwo, kTp, whole, cp, ring, pp, all}) {
    const EvalResults several = on(mesh);
    for (const auto& [name, result] : one) {
      const EvalSums &wanted = result.sums, &given = several.at(name).sums;
      EXPECT_DOUBLE_EQ(given.bytes, bytes_.at(name)) << mesh.name() << " " << name;
      EXPECT_NEAR(given.nats / wanted.nats, 1, 1e-6) << mesh.name() << " " << name;
    }
  }
}

TEST_F(BitsPerByteRun, AreACurveAnEventAndWhatACheckpointIsEvaluatedTo) {
  config_.eval_data["held"].value = rows("held", {1});
  train_in("told", kOneRank);
  const TrainedSource checkpoint(run_dir());
  const EvalResults again = *evaluate_checkpoint(checkpoint, {}, {}, at::kCPU, stop_);
  const double bits = *again.at("held").bits_per_byte();
  EXPECT_GT(bits, 0);
  for (const char* metric : {"eval.bits_per_byte", "eval.held.bits_per_byte"}) {
    ASSERT_EQ(curve(metric).size(), 1u) << metric;
    EXPECT_NEAR(curve(metric)[0] / bits, 1, 1e-6) << metric;
  }
  std::string said;
  for (const Json& event : lines("events.jsonl"))
    if (event.at("kind") == "eval") {
      EXPECT_EQ(event.at("facts").at("bits_per_byte"), curve("eval.bits_per_byte")[0]);
      said += event.at("text").get<std::string>();
    }
  EXPECT_NE(said.find(" bits per byte, "), std::string::npos) << said;
  const Json saved = checkpoint.info().manifest.at("train_state").at("eval").at("total").at("last");
  EXPECT_EQ(saved.at("bits_per_byte"), curve("eval.bits_per_byte")[0]);
}

TEST_F(BitsPerByteRun, AreLeftOutWithoutATokenizer) {
  config_.tokenizer = "";
  MdsConfig tokens;
  tokens.local_dir = dir_ / "data";
  config_.seq_len = 16;
  config_.train_data.value = tokens;
  config_.eval_data["held"].value = tokens;
  train_in("untold", kOneRank);
  EXPECT_EQ(curve("eval.held.loss").size(), 1u);
  EXPECT_TRUE(curve("eval.held.bits_per_byte").empty());
  EXPECT_TRUE(curve("eval.bits_per_byte").empty());
}

}  // namespace
}  // namespace tycho
