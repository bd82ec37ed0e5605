// Which meshes are proposed, in which order, and what is said of those that do not fit.
#include "trainer/plan/mesh_choice.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/plan/estimate.h"
#include "trainer/recipe/config_rules.h"

namespace tycho {
namespace {

TrainConfig with_data() {
  TrainConfig config;
  std::get<MdsConfig>(config.train_data.value).local_dir = "/nowhere";
  return config;
}

TrainConfig llama_8b() {
  TrainConfig config = with_data();
  std::get<LlamaConfig>(config.model.value) = {
      .width = 4096, .layers = 32, .heads = 32, .kv_heads = 8, .ffn_width = 14336, .vocab_size = 128256};
  config.precision = Precision::kBf16;
  config.seq_len = 8192;
  config.global_batch = Duration::parse("64sp");
  config.micro_batch = Duration::parse("1sp");
  config.recompute.mode = Recompute::kSelective;
  config.machine.name = "h100";
  return config;
}

TEST(MeshChoice, SharesAModelThatDoesNotFitWhole) {
  const TrainConfig config = llama_8b();
  const PlanDevices devices = {.num_ranks = 16};
  const std::vector<MeshChoice> choices = rank_meshes(config, devices);
  ASSERT_GT(choices.size(), 5u);
  EXPECT_TRUE(choices.front().fits);
  EXPECT_GT(choices.front().mesh.size(Axis::kDpShard), 1);
  EXPECT_EQ(choices.front().mesh.size(Axis::kTp), 1) << "tensor parallel waits in every block";
  double fastest = choices.front().time.tokens_per_s;
  bool fitted = true;
  for (const MeshChoice& one : choices) {
    EXPECT_EQ(one.mesh.num_ranks(), 16);
    EXPECT_EQ(one.fits, one.device_bytes <= machine_of(config.machine).memory_bytes);
    EXPECT_LE(one.fits, fitted) << "those that fit come first";
    EXPECT_TRUE(!one.fits || one.time.tokens_per_s <= fastest * (1 + 1e-6));
    fastest = one.time.tokens_per_s, fitted = one.fits;
  }
  const auto whole = std::find_if(choices.begin(), choices.end(),
                                  [](const MeshChoice& one) { return one.mesh.size(kCopyAxes) == 1; });
  ASSERT_NE(whole, choices.end());
  EXPECT_FALSE(whole->fits);
}

TEST(MeshChoice, IsWhatThePlanOfItsSizesSays) {
  const TrainConfig config = llama_8b();
  const PlanDevices devices = {.num_ranks = 16};
  const MeshChoice best = best_mesh(rank_meshes(config, devices), machine_of(config.machine));
  TrainConfig given = config;
  given.parallel = with_sizes(given.parallel, best.mesh);
  EXPECT_EQ(given.parallel.mesh, MeshSizes::kGiven);
  EXPECT_TRUE(check_config(given, 16).empty());
  const Plan plan = make_plan(given, devices);
  EXPECT_EQ(mesh_shape(given.parallel, 16), best.mesh);
  EXPECT_EQ(plan.training_bytes, best.device_bytes);
  ASSERT_TRUE(plan.estimate.has_value());
  EXPECT_DOUBLE_EQ(plan.estimate->tokens_per_s, best.time.tokens_per_s);
}

TEST(MeshChoice, KeepsWholeCopiesWhereTheyFit) {
  TrainConfig config = with_data();
  config.machine.name = "h100";
  config.device = DeviceKind::kCuda;
  const MeshChoice best = best_mesh(rank_meshes(config, {.num_ranks = 8}), machine_of(config.machine));
  EXPECT_EQ(best.mesh, (MeshShape{{1, 8, 1, 1, 1}}));
}

TEST(MeshChoice, LeavesOutMeshesThatARecipeRefuses) {
  TrainConfig config = llama_8b();
  config.seq_len = 8191;  // tensor and context parallel need equal parts of it
  const std::vector<MeshChoice> meshes = rank_meshes(config, {.num_ranks = 8});
  EXPECT_GT(meshes.size(), 1u);
  for (const MeshChoice& one : meshes)
    EXPECT_EQ(one.mesh.size(Axis::kTp | Axis::kCp), 1) << describe(one.mesh);
}

TEST(MeshChoice, SaysHowMuchIsMissingWhenNothingFits) {
  TrainConfig config = llama_8b();
  config.machine.memory = Bytes::parse("8GiB");
  const Machine machine = machine_of(config.machine);
  try {
    best_mesh(rank_meshes(config, {.num_ranks = 2}), machine);
    FAIL() << "it does not fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTopology);
    const std::string text = error.what();
    EXPECT_NE(text.find("expected a mesh that fits into 8.59 GB a rank, and none does"), std::string::npos)
        << text;
    EXPECT_NE(text.find("does not fit: tp 2"), std::string::npos) << text;
    EXPECT_NE(text.find("too much"), std::string::npos) << text;
  }
}

TEST(MeshChoice, SaysWhatIsWrongWithARecipeThatNoMeshAllows) {
  TrainConfig config = llama_8b();
  config.global_batch = Duration::parse("3sp");
  std::get<LlamaConfig>(config.model.value).layers = 1;
  std::get<LlamaConfig>(config.model.value).heads = 31;
  std::get<LlamaConfig>(config.model.value).kv_heads = 31;
  std::get<LlamaConfig>(config.model.value).width = 31 * 128;
  try {
    rank_meshes(config, {.num_ranks = 8});
    FAIL() << "8 ranks cannot share 3 sequences";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTopology);
    EXPECT_NE(std::string(error.what()).find("global_batch"), std::string::npos) << error.what();
  }
}

TEST(MeshChoice, PrintsATableOf80Columns) {
  const TrainConfig config = llama_8b();
  const std::string text = choices_text(rank_meshes(config, {.num_ranks = 64}), machine_of(config.machine));
  std::istringstream lines(text);
  int num_lines = 0;
  for (std::string line; std::getline(lines, line); ++num_lines) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_GE(num_lines, 8);
  for (const char* part : {"  1. ", "  2. ", "  3. ", "waits: ", "does not fit: dp_replicate 64"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace tycho
