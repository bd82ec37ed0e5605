// Losses by position in the sequence: against a decoder of plain ATen on every mesh, and against LLM
// Foundry's own sums.
#include "trainer/train/loss_by_position.h"

#include <cmath>

#include "tests/trainer/aten.h"
#include "tests/trainer/models/decoder_oracle.h"
#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

// ---- the sums ----

Tensor ints(const Json& rows) {
  const auto width = static_cast<int64_t>(rows.at(0).size());
  Tensor all = at::empty({static_cast<int64_t>(rows.size()), width}, at::kInt);
  for (int64_t row = 0; row < all.size(0); ++row)
    for (int64_t i = 0; i < width; ++i)
      all[row][i] = rows.at(static_cast<size_t>(row)).at(static_cast<size_t>(i)).get<int32_t>();
  return all;
}
Tensor floats_of(const Json& rows) {
  std::vector<float> values;
  for (const Json& row : rows)
    for (const Json& value : row) values.push_back(value.get<float>());
  return at::tensor(values).view({static_cast<int64_t>(rows.size()), -1});
}

/// As LLM Foundry counts: a position without a target is in its sum of perplexities with 1, and where there
/// is no target at all its means are -1.
void expect_means(const NamedTable& table, const std::string& prefix, const Json& golden,
                  const std::string& infix, const std::vector<int64_t>& ignored) {
  const Json &counts = golden.at("sum_length" + infix), &losses = golden.at("mean_loss" + infix + "_v_len"),
             &perplexities = golden.at("mean_perplexity" + infix + "_v_len");
  ASSERT_EQ(table.rows.size(), counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    const Json& row = table.rows[i];
    const auto count = counts[i].get<int64_t>();
    EXPECT_EQ(row.at("position"), i);
    EXPECT_EQ(row.at(prefix + "tokens"), count);
    EXPECT_EQ(row.contains(prefix + "mean_loss"), count > 0) << row;
    if (count == 0) continue;
    EXPECT_NEAR(row.at(prefix + "mean_loss").get<double>(), losses[i].get<double>(), 1e-5);
    const double theirs =
        perplexities[i].get<double>() - static_cast<double>(ignored[i]) / static_cast<double>(count);
    EXPECT_NEAR(row.at(prefix + "mean_perplexity").get<double>() / theirs, 1, 1e-5);
  }
}

TEST(LossByPosition, HasTheSumsOfLlmFoundry) {
  const std::string file = std::string(TYCHO_GOLDEN_DIR) + "/loss_by_length/loss_by_length.json";
  const Json golden = parse_json(read_file(file), file);
  const int64_t seq = std::ssize(golden.at("batches").at(0).at("targets").at(0));
  LossByPosition ours(seq, at::kCPU);
  std::vector<int64_t> ignored(static_cast<size_t>(seq)), ignored_in_documents(static_cast<size_t>(seq));
  for (const Json& batch : golden.at("batches")) {
    const Tensor targets = ints(batch.at("targets")), positions = ints(batch.at("document_positions"));
    const int64_t rows = targets.size(0);
    ours.add({.losses_N = floats_of(batch.at("losses")).flatten(),
              .targets_N = targets.flatten(),
              .positions_N = at::arange(seq, at::kInt).repeat({rows}),
              .document_positions_N = positions.flatten()});
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < seq; ++i) {
        if (targets[row][i].item<int>() != -100) continue;
        ++ignored[static_cast<size_t>(i)];
        ++ignored_in_documents[static_cast<size_t>(positions[row][i].item<int>())];
      }
  }
  const NamedTable table = ours.table();
  EXPECT_EQ(table.columns,
            (std::vector<std::string>{"position", "tokens", "mean_loss", "mean_perplexity", "document_tokens",
                                      "document_mean_loss", "document_mean_perplexity"}));
  expect_means(table, "", golden.at("expected"), "", ignored);
  expect_means(table, "document_", golden.at("expected"), "_seq_id", ignored_in_documents);
}

TEST(LossByPosition, HasNoColumnsOfDocumentsWithoutAny) {
  LossByPosition ours(3, at::kCPU);
  ours.add({.losses_N = at::tensor({1.0F, 2.0F, 7.0F}),
            .targets_N = at::tensor({5, 6, -100}, at::kInt),
            .positions_N = at::arange(3, at::kInt),
            .document_positions_N = {}});
  const NamedTable table = ours.table();
  EXPECT_EQ(table.columns, (std::vector<std::string>{"position", "tokens", "mean_loss", "mean_perplexity"}));
  EXPECT_EQ(table.rows[2], (Json{{"position", 2}, {"tokens", 0}}));  // not 7: nothing is asked there
  EXPECT_NEAR(table.rows[1].at("mean_perplexity").get<double>(), std::exp(2.0), 1e-9);
}

// ---- of runs ----

class LossByPositionRun : public ShardedRun {
 protected:
  LossByPositionRun() {
    config_.max_duration = {1, DurationUnit::kBatch};
    config_.scheduler.value = ConstantConfig{};
    config_.log.loss_by_position = Duration{1, DurationUnit::kBatch};
    mds().eos_token_id = 7;  // documents end with it
  }
  MdsConfig& mds() { return std::get<MdsConfig>(config_.train_data.value); }

  /// Of the first step: losses of a plain decoder with the first weights, NaN where there is no target, and
  /// each token's position in its document.
  void ask_the_oracle() {
    config_.run_dir = dir_ / "first";
    std::vector<PeekedSequence> batch;
    expect_all_well(on_mesh(kOneRank, [&](TrainingSession& session) {
      batch = session.peek(8);
      session.save();
    }));
    std::map<std::string, Tensor> weights;
    const DecoderSpec spec = decoder_spec(config_.model);
    for (const auto& unit : model_layout(config_.model).units)
      for (const ParamSpec& param : unit.params)
        weights[param.name] = floats(newest_tensors().at(param.name)).view(param.shape);
    Tensor tokens = at::empty({8, 16}, at::kInt), targets = at::empty({8, 16}, at::kInt);
    documents_ = at::zeros({8, 16}, at::kInt), positions_ = at::zeros({8, 16}, at::kInt);
    for (int64_t row = 0; row < 8; ++row)
      for (int64_t i = 0; i < 16; ++i) {
        const PeekedSequence& sequence = batch[static_cast<size_t>(row)];
        tokens[row][i] = sequence.tokens[static_cast<size_t>(i)];
        targets[row][i] = sequence.labels[static_cast<size_t>(i)];
        if (i == 0) continue;
        const bool begins = sequence.tokens[static_cast<size_t>(i - 1)] == 7;
        documents_[row][i] = documents_[row][i - 1].item<int>() + (begins ? 1 : 0);
        positions_[row][i] = begins ? 0 : positions_[row][i - 1].item<int>() + 1;
      }
    DecoderOracle oracle(spec, weights);
    oracle.documents_BT = documents_;
    const Tensor asked = targets.ge(0);
    const Tensor picked =
        oracle.logits(tokens).log_softmax(-1).gather(2, targets.clamp_min(0).to(at::kLong).unsqueeze(2));
    losses_ = (-picked.squeeze(2)).masked_fill(asked.logical_not(), NAN);
  }
  /// {tokens, mean loss, mean perplexity} of the losses that a mask selects.
  static std::array<double, 3> means(const Tensor& losses) {
    const Tensor there = losses.masked_select(losses.isnan().logical_not());
    return {static_cast<double>(there.numel()), there.mean().item<double>(),
            there.exp().mean().item<double>()};
  }
  static void expect_row(const Json& row, const std::string& prefix, const std::array<double, 3>& wanted) {
    EXPECT_EQ(row.at(prefix + "tokens").get<double>(), wanted[0]) << row;
    if (wanted[0] == 0) return;
    EXPECT_NEAR(row.at(prefix + "mean_loss").get<double>(), wanted[1], 1e-5) << row;
    EXPECT_NEAR(row.at(prefix + "mean_perplexity").get<double>() / wanted[2], 1, 1e-5) << row;
  }

  Tensor losses_, documents_, positions_;  // [8, 16]
};

TEST_F(LossByPositionRun, IsThatOfAPlainDecoderOnEveryMesh) {
  ask_the_oracle();
  ASSERT_GT(documents_.max().item<int>(), 0);  // some sequences have several
  for (const TestMesh& mesh :
       {kOneRank, kTwo, TestMesh{2, 1}, kTp, TestMesh{.tp = 2, .sequence = false}, TestMesh{.cp = 2},
        TestMesh{.pp = 2}, TestMesh{.shard = 2, .cp = 2}, TestMesh{.tp = 2, .pp = 2},
        TestMesh{.tp = 2, .cp = 2}, TestMesh{.cp = 2, .pp = 2}}) {
    SCOPED_TRACE(mesh.name());
    train_in("several", mesh);
    const std::vector<Json> rows = lines("loss_by_position.jsonl");
    ASSERT_EQ(rows.size(), 16U);
    for (int64_t i = 0; i < 16; ++i) {
      const Json& row = rows[static_cast<size_t>(i)];
      EXPECT_EQ(row.at("step"), 1);
      EXPECT_EQ(row.at("position"), i);
      expect_row(row, "", means(losses_.select(1, i)));
      expect_row(row, "document_", means(losses_.masked_select(positions_.eq(i))));
    }
  }
}

TEST_F(LossByPositionRun, IsRecordedAtItsIntervalAndChangesNothing) {
  config_.max_duration = {7, DurationUnit::kBatch};
  config_.micro_batch = Duration{3, DurationUnit::kSample};  // the last of a step is not full
  config_.log.loss_by_position.reset();
  train_in("without", kOneRank);
  EXPECT_FALSE(std::filesystem::exists(run_dir() + "/loss_by_position.jsonl"));
  const std::map<int64_t, double> wanted = losses();
  config_.log.loss_by_position = Duration{3, DurationUnit::kBatch};
  train_in("with", kOneRank);
  EXPECT_EQ(losses(), wanted);
  std::map<int64_t, std::pair<double, double>> sums;  // by step: losses and tokens
  for (const Json& row : lines("loss_by_position.jsonl")) {
    const auto tokens = row.at("tokens").get<double>();
    auto& [loss, count] = sums[row.at("step").get<int64_t>()];
    count += tokens;
    if (tokens > 0) loss += tokens * row.at("mean_loss").get<double>();
  }
  ASSERT_EQ(sums.size(), 2U);
  for (const int64_t step : {3, 6}) {
    EXPECT_EQ(sums.at(step).second, 8 * 15) << step;
    EXPECT_NEAR(sums.at(step).first / sums.at(step).second, wanted.at(step), 1e-6) << step;
  }
}

}  // namespace
}  // namespace tycho
