// The mesh that a recipe asks for.
#include "trainer/recipe/parallel.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/config_rules.h"

namespace tycho {
namespace {

std::string problems_of(const ParallelConfig& parallel, std::optional<int64_t> num_ranks = std::nullopt) {
  ConfigProblems problems;
  check(parallel, num_ranks, problems);
  std::string text;
  for (const ConfigProblem& problem : problems.take())
    text += (text.empty() ? "" : "\n") + problem.path + ": " + problem.message;
  return text;
}

TEST(ParallelConfig, TakesAllRanksAsReplicasByDefault) {
  for (const int64_t num_ranks : {1, 2, 7, 4096}) {
    EXPECT_EQ(problems_of({}, num_ranks), "");
    EXPECT_EQ(mesh_shape({}, num_ranks), (MeshShape{{1, static_cast<int>(num_ranks), 1, 1, 1}}));
  }
  EXPECT_EQ(wanted_ranks({}), std::nullopt);
}

TEST(ParallelConfig, HoldsTheNumberOfRanksToTheMesh) {
  EXPECT_EQ(problems_of({.dp_replicate = 4}, 4), "");
  EXPECT_EQ(problems_of({.dp_replicate = 4}), "");  // ranks are not known yet
  EXPECT_EQ(wanted_ranks({.dp_replicate = 4}), 4);
  EXPECT_EQ(mesh_shape({.dp_replicate = 4}, 4).size(Axis::kDpReplicate), 4);
  EXPECT_EQ(
      problems_of({.dp_replicate = 4}, 2),
      "parallel.dp_replicate: the mesh has 4 ranks, and the run has 2; start 4 ranks, or write -1 for as "
      "many as there are");
  EXPECT_EQ(problems_of({.dp_replicate = 1}, 3),
            "parallel.dp_replicate: the mesh has 1 rank, and the run has 3; start 1 rank, or write -1 for as "
            "many as there are");
  EXPECT_NE(problems_of({.dp_replicate = 0}, 2).find("parallel.dp_replicate: 0 replicas cannot train"),
            std::string::npos);
  EXPECT_NE(problems_of({.dp_replicate = int64_t{1} << 40}, 2), "");
}

TEST(ParallelConfig, SharesAModelAmongRanks) {
  const auto shape = [](const ParallelConfig& parallel, int64_t num_ranks) {
    EXPECT_EQ(problems_of(parallel, num_ranks), "");
    return describe(mesh_shape(parallel, num_ranks));
  };
  EXPECT_EQ(shape({.dp_shard = 8}, 8), "dp_shard 8");
  EXPECT_EQ(shape({.dp_shard = 4}, 8), "dp_replicate 2 x dp_shard 4");
  EXPECT_EQ(shape({.dp_shard = -1}, 8), "dp_shard 8") << "one copy of the model";
  EXPECT_EQ(shape({.dp_replicate = 2, .dp_shard = -1}, 8), "dp_replicate 2 x dp_shard 4");
  EXPECT_EQ(shape({.dp_replicate = 2, .dp_shard = 3}, 6), "dp_replicate 2 x dp_shard 3");
  EXPECT_EQ(shape({.dp_shard = -1}, 1), "1 rank");
  EXPECT_EQ(wanted_ranks({.dp_shard = 8}), std::nullopt);
  EXPECT_EQ(wanted_ranks({.dp_replicate = 2, .dp_shard = 8}), 16);
  EXPECT_EQ(fewest_ranks({.dp_shard = 8}), 8);
  EXPECT_EQ(fewest_ranks({.dp_replicate = 2, .dp_shard = -1}), 2);
}

TEST(ParallelConfig, SharesMatricesAmongRanks) {
  EXPECT_EQ(problems_of({.dp_shard = 2, .tp = 2}, 8), "");
  EXPECT_EQ(describe(mesh_shape({.dp_shard = 2, .tp = 2}, 8)), "dp_replicate 2 x dp_shard 2 x tp 2");
  EXPECT_EQ(data_ranks({.dp_shard = 2, .tp = 2}, 8), 4);
  EXPECT_EQ(data_ranks({.tp = 8}, 8), 1);
  EXPECT_EQ(fewest_ranks({.dp_shard = 2, .tp = 4}), 8);
  EXPECT_EQ(problems_of({.tp = 4}, 6),
            "parallel.tp: the number of ranks must be a multiple of 4, and the run has 6. Start 4 ranks, or "
            "set parallel.tp to one of 1, 2, 3, 6");
  EXPECT_NE(problems_of({.dp_replicate = 1, .dp_shard = 3, .tp = 2}, 8)
                .find("dp_replicate x dp_shard x tp = 1 x 3 x 2 is 6 ranks"),
            std::string::npos);
}

TEST(ParallelConfig, NamesThoseThatCanShareAModel) {
  const auto problem = [](const char* lines, int64_t num_ranks) {
    Json recipe = parse_json(R"({
      "max_duration": "100ba", "seq_len": 128, "global_batch": "8sp", "precision": "bf16",
      "model": {"kind": "llama", "width": 96, "heads": 12, "kv_heads": 4},
      "optimizer": {"kind": "adamw", "lr": 0.0006}, "train_data": {"kind": "mds", "local_dir": "data/x"}})",
                             "test");
    recipe.merge_patch(parse_json(lines, "test"));
    std::vector<ConfigProblem> problems;
    const TrainConfig config = read_config(recipe, problems);
    if (problems.empty()) problems = check_config(config, num_ranks);
    return problems.empty() ? std::string() : problems[0].path + ": " + problems[0].message;
  };
  for (const int tp : {1, 2, 4, 12})
    EXPECT_EQ(problem(fmt::format(R"({{"seq_len": 96, "parallel": {{"tp": {}}}}})", tp).c_str(), tp), "");
  EXPECT_EQ(problem(R"({"parallel": {"tp": 8}})", 8),
            "parallel.tp: 8 ranks cannot evenly share 12 heads with 4 for keys and values. This model can be "
            "shared by 1, 2, 4; with 8 ranks, the nearest meshes: tp = 4 and 2 for data; tp = 2 and 4 for "
            "data; tp = 1 and 8 for data");
  EXPECT_NE(problem(R"({"seq_len": 130, "parallel": {"tp": 4}})", 4)
                .find("seq_len = 130 is not a multiple of 4, which sequence parallel needs; set "
                      "parallel.sequence_parallel = false"),
            std::string::npos);
  EXPECT_EQ(problem(R"({"seq_len": 130, "parallel": {"tp": 4, "sequence_parallel": false}})", 4), "");
  EXPECT_NE(
      problem(R"({"model": {"vocab_size": 3}, "parallel": {"tp": 4}})", 4).find("4 ranks are more than"),
      std::string::npos);
  EXPECT_EQ(problem(R"({"optimizer": {"kind": "muon"}, "parallel": {"tp": 2}})", 2), "");
  EXPECT_EQ(problem(R"({"master_weights": "stochastic", "parallel": {"tp": 2}})", 2), "");
  EXPECT_EQ(problem(R"({"clip": {"adaptive": 0.1}, "parallel": {"tp": 2}})", 2), "");
  EXPECT_EQ(problem(R"({"model": {"kind": "mpt", "width": 96, "heads": 12, "kv_heads": null, "qk_ln": true},
                        "parallel": {"tp": 2}})",
                    2),
            "");
}

TEST(ParallelConfig, NamesTheNearestMeshes) {
  EXPECT_EQ(
      problems_of({.dp_replicate = 2, .dp_shard = 4}, 6),
      "parallel.dp_shard: dp_replicate x dp_shard = 2 x 4 is 8 ranks, and the run has 6. Start 8 ranks, or "
      "set one of the nearest meshes: dp_replicate = 2 with dp_shard = 3; dp_replicate = 3 with dp_shard = "
      "2; dp_replicate = 1 with dp_shard = 6");
  EXPECT_EQ(
      problems_of({.dp_shard = 8}, 12),
      "parallel.dp_shard: the number of ranks must be a multiple of 8, and the run has 12. Start 8 ranks, or "
      "set one of the nearest meshes: dp_replicate = 1 with dp_shard = 12; dp_replicate = 2 with dp_shard = "
      "6; dp_replicate = 3 with dp_shard = 4");
  EXPECT_EQ(problems_of({.dp_shard = 8}, 1)
                .rfind("parallel.dp_shard: the number of ranks must be a multiple of 8, "
                       "and the run has 1. Start 8 ranks, or",
                       0),
            0U);
  EXPECT_NE(problems_of({.dp_replicate = 4, .dp_shard = -1}, 6), "");
  EXPECT_NE(problems_of({.dp_shard = 0}, 6).find("parallel.dp_shard: 0 ranks cannot share a model"),
            std::string::npos);
  EXPECT_NE(problems_of({.dp_shard = int64_t{1} << 40}, 2), "");
}

TEST(ParallelConfig, SharesWhatUpdatesWholeParameters) {
  const auto problem = [](const char* lines) {
    Json recipe = parse_json(R"({
      "max_duration": "100ba", "seq_len": 128, "model": {"kind": "llama", "width": 64}, "precision": "bf16",
      "optimizer": {"kind": "adamw", "lr": 0.0006}, "train_data": {"kind": "mds", "local_dir": "data/x"},
      "parallel": {"dp_shard": 2}})",
                             "test");
    recipe.merge_patch(parse_json(lines, "test"));
    std::vector<ConfigProblem> problems;
    read_config(recipe, problems);
    return problems.empty() ? std::string() : problems[0].path + ": " + problems[0].message;
  };
  EXPECT_EQ(problem("{}"), "");
  EXPECT_EQ(problem(R"({"optimizer": {"kind": "muon"}})"), "");
  EXPECT_EQ(problem(R"({"master_weights": "stochastic"})"), "");
  EXPECT_EQ(problem(R"({"master_weights": "none"})"), "");
  EXPECT_EQ(problem(R"({"clip": {"adaptive": 0.1}})"), "");
}

TEST(ParallelConfig, SharesSequencesAmongRanks) {
  EXPECT_EQ(problems_of({.dp_shard = 2, .cp = 2, .tp = 2}, 16), "");
  EXPECT_EQ(describe(mesh_shape({.dp_shard = 2, .cp = 4}, 16)), "dp_replicate 2 x dp_shard 2 x cp 4");
  EXPECT_EQ(data_ranks({.dp_shard = 2, .cp = 4}, 16), 4);
  EXPECT_EQ(fewest_ranks({.dp_shard = 2, .cp = 4}), 8);
  EXPECT_EQ(problems_of({.cp = 4}, 6),
            "parallel.cp: the number of ranks must be a multiple of 4, and the run has 6. Start 4 ranks, or "
            "set parallel.cp to one of 1, 2, 3, 6");
  EXPECT_NE(problems_of({.dp_replicate = 1, .dp_shard = 3, .cp = 2, .tp = 2}, 16)
                .find("dp_replicate x dp_shard x cp x tp = 1 x 3 x 2 x 2 is 12 ranks"),
            std::string::npos);
}

TEST(ParallelConfig, HasStages) {
  EXPECT_EQ(problems_of({.pp = 4}, 8), "");
  EXPECT_EQ(describe(mesh_shape({.pp = 4, .dp_shard = -1, .tp = 2}, 16)), "pp 4 x dp_shard 2 x tp 2");
  EXPECT_EQ(data_ranks({.pp = 4}, 8), 2);
  EXPECT_EQ(fewest_ranks({.pp = 4, .tp = 2}), 8);
  EXPECT_EQ(problems_of({.pp = 4, .tp = 2}, 12),
            "parallel.pp: the number of ranks must be a multiple of pp x tp = 8, and the run has 12. Start 8 "
            "ranks, or set parallel.pp = 1");
  EXPECT_NE(problems_of({.pp = 2, .dp_replicate = 1, .dp_shard = 3}, 8)
                .find("dp_replicate x dp_shard x pp = 1 x 3 x 2 is 6 ranks"),
            std::string::npos);
  EXPECT_NE(problems_of({.pp = 2, .dp_replicate = 1, .dp_shard = 3}, 8)
                .find("dp_replicate = 1 with dp_shard = 4 and pp = 2"),
            std::string::npos);
}

TEST(ParallelConfig, NamesKeysOfAPipelineThatDoNotFitEachOther) {
  ParallelConfig parallel = {.pp = 2, .pp_chunks = 2};
  EXPECT_EQ(problems_of(parallel).rfind("parallel.pp_schedule: ", 0), 0U);
  parallel.pp_schedule = PipelineSchedule::kInterleaved;
  EXPECT_EQ(problems_of(parallel), "");
  parallel.pp_chunks = 1;
  EXPECT_EQ(problems_of(parallel).rfind("parallel.pp_schedule: ", 0), 0U);
  EXPECT_EQ(problems_of({.pp_chunks = 2}),
            "parallel.pp_chunks: has no effect with parallel.pp = 1; remove it");
  EXPECT_EQ(problems_of({.pp_layers = {3}}),
            "parallel.pp_layers: has no effect with parallel.pp = 1; remove it");
}

TEST(ParallelConfig, IsReadFromARecipe) {
  const auto problem = [](const char* parallel) {
    Json recipe = parse_json(R"({
      "max_duration": "100ba", "seq_len": 128, "model": {"kind": "llama", "width": 64},
      "optimizer": {"kind": "adamw", "lr": 0.0006}, "train_data": {"kind": "mds", "local_dir": "data/x"}})",
                             "test");
    recipe["parallel"] = parse_json(parallel, "test");
    std::vector<ConfigProblem> problems;
    const TrainConfig config = read_config(recipe, problems);
    return problems.empty() ? std::to_string(config.parallel.dp_replicate)
                            : problems[0].path + ": " + problems[0].message;
  };
  EXPECT_EQ(problem("{}"), "-1");
  EXPECT_EQ(problem(R"({"dp_replicate": 2, "tp": 1})"), "2");
  EXPECT_EQ(problem(R"({"dp_replicate": 2, "tp": 2, "sequence_parallel": false})"), "2");
  EXPECT_EQ(problem(R"({"pp": 2, "pp_schedule": "gpipe"})"), "-1");
  EXPECT_EQ(problem(R"({"pp_schedule": "zero"})").rfind("parallel.pp_schedule: ", 0), 0U);
  EXPECT_EQ(
      problem(R"({"dp_replicate": -2})").rfind("parallel.dp_replicate: expected a whole number >= -1", 0),
      0U);
  EXPECT_EQ(problem(R"({"tp": 0})").rfind("parallel.tp: expected a whole number > 0", 0), 0U);
  EXPECT_EQ(problem(R"({"dp": 2})").rfind("parallel.dp: unknown key", 0), 0U);
}

}  // namespace
}  // namespace tycho
