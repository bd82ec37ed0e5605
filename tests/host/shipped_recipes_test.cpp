// The recipes of this repository against the published tables of their models (LLM Foundry's mpt-*.yaml and
// README, TorchTitan's presets, GPT-2's paper).
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <tuple>

#include "tests/host/shell.h"
#include "tests/trainer/recipe/json_schema_checker.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

struct Published {
  const char* recipe;
  int64_t num_params;
  double gflop_per_token, gib_of_checkpoint, total_flops;  // 0: not published
};

const Published kPublished[] = {{"mpt-125m", 125311488, 0.978, 1.4, 2.46e18},
                                {"mpt-350m", 355985408, 2.740, 4.0, 1.92e19},
                                {"mpt-760m", 760470528, 5.469, 8.5, 8.31e19},
                                {"mpt-1b", 1315950592, 9.104, 14.7, 2.37e20},
                                {"mpt-3b", 2651837440, 17.92, 29.6, 9.68e20},
                                {"mpt-7b", 6658859008, 43.17, 74.4, 5.79e21},
                                {"mpt-13b", 12853954560, 82.16, 143.7, 2.14e22},
                                {"mpt-30b", 29975214080, 188.3, 335.0, 1.13e23},
                                {"mpt-70b", 64862437376, 405.3, 724.9, 5.67e23},
                                {"llama-1b", 1235814400, 10.6361, 0, 0},
                                {"llama-8b", 8030261248, 57.9144, 0, 0},
                                {"llama-70b", 70553706496, 481.443, 0, 0},
                                {"qwen2", 494032768, 0, 0, 0},
                                {"qwen3", 596049920, 0, 0, 0},
                                {"mistral", 7248023552, 0, 0, 0},
                                {"ministral3", 3429006336, 0, 0, 0},
                                {"gemma2", 2614341888, 0, 0, 0},
                                {"gemma3", 268098176, 0, 0, 0},
                                {"olmo2", 1484916736, 0, 0, 0},
                                {"olmo3", 7298011136, 0, 0, 0},
                                {"smollm2", 134515008, 0, 0, 0},
                                {"smollm3", 3075098624, 0, 0, 0},
                                {"phi3", 3821079552, 0, 0, 0},
                                {"granite", 2533539840, 0, 0, 0},
                                {"gpt2-124m", 124439808, 0, 0, 0},
                                {"gpt2-350m", 354823168, 0, 0, 0},
                                {"gpt2-774m", 774030080, 0, 0, 0},
                                {"gpt2-1.5b", 1557611200, 0, 0, 0},
                                // nanoGPT prints 0.80M, without the 8,192 of its positions.
                                {"speedrun/nanogpt", 804096, 0, 0, 0}};

/// Finetuning reads config.json of the model: what the hub's says of mosaicml/mpt-7b and Meta-Llama-3-8B.
const char kMpt7b[] =
    R"({"model_type": "mpt", "architectures": ["MPTForCausalLM"], "d_model": 4096, "n_heads": 32,
  "n_layers": 32, "expansion_ratio": 4, "max_seq_len": 2048, "vocab_size": 50432, "no_bias": true,
  "norm_type": "low_precision_layernorm", "attn_config": {"alibi": true, "alibi_bias_max": 8, "attn_impl": "torch",
  "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false, "clip_qkv": null}})";
/// What it says of mosaicml/mpt-30b.
const char kMpt30b[] =
    R"({"model_type": "mpt", "architectures": ["MPTForCausalLM"], "d_model": 7168, "n_heads": 64,
  "n_layers": 48, "expansion_ratio": 4, "max_seq_len": 8192, "vocab_size": 50432, "no_bias": true,
  "norm_type": "low_precision_layernorm", "attn_config": {"alibi": true, "alibi_bias_max": 8, "attn_impl": "torch",
  "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false, "clip_qkv": null}})";
const char kLlama3[] = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
  "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "vocab_size": 128256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
  "tie_word_embeddings": false})";

const char kSmollm2[] = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 576,
  "intermediate_size": 1536, "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
  "vocab_size": 49152, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 100000,
  "rope_interleaved": false, "is_llama_config": true, "tie_word_embeddings": true, "torch_dtype": "bfloat16"})";
const char kQwen3[] =
    R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "attention_bias": false,
  "attention_dropout": 0.0, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3072,
  "max_position_embeddings": 40960, "max_window_layers": 28, "num_attention_heads": 16, "num_hidden_layers": 28,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
  "sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936})";

class ShippedRecipesTest : public ShellTest {
 protected:
  /// The folder of a model that recipes/finetune/<recipe>.lua can start from, as far as plans read it.
  std::string model_of(const std::string& recipe) const {
    const std::map<std::string, const char*> configs = {{"mpt-7b", kMpt7b},
                                                        {"mpt-30b", kMpt30b},
                                                        {"llama-3-8b", kLlama3},
                                                        {"smollm2-135m", kSmollm2},
                                                        {"qwen3-0.6b", kQwen3}};
    std::filesystem::create_directories(folder_ / recipe);
    write(configs.at(recipe), recipe + "/config.json");
    if (recipe.find("qwen") == 0 || recipe.find("smollm") == 0)  // which train on conversations
      std::filesystem::copy_file(TYCHO_SOURCE_DIR "/tests/golden/chat/tokenizer.json",
                                 folder_ / recipe / "tokenizer.json",
                                 std::filesystem::copy_options::overwrite_existing);
    return (folder_ / recipe).string();
  }
};

TEST_F(ShippedRecipesTest, PlanWhatIsPublished) {
  for (const Published& wanted : kPublished) {
    const Outcome planned =
        shell(std::string("tycho plan --json " TYCHO_SOURCE_DIR "/recipes/") + wanted.recipe + ".lua");
    ASSERT_EQ(planned.code, 0) << wanted.recipe << "\n" << planned.output;
    const Json plan = Json::parse(planned.output);
    EXPECT_EQ(plan.at("num_params").get<int64_t>(), wanted.num_params) << wanted.recipe;
    const auto expect = [&](const char* what, double value, double published, double share) {
      if (published > 0) {
        EXPECT_NEAR(value / published, 1, share) << wanted.recipe << " " << what;
      }
    };
    expect("GFLOP per token", plan.at("flops_per_token_full").get<double>() / 1e9, wanted.gflop_per_token,
           1e-3);
    expect("GiB of a checkpoint", plan.at("checkpoint_bytes").get<double>() / (1 << 30),
           wanted.gib_of_checkpoint, 0.02);
    expect("FLOP in all", plan.at("total_flops").get<double>(), wanted.total_flops, 5e-3);
  }
}

/// The sizes beside the smallest, which a recipe has without an argument.
TEST_F(ShippedRecipesTest, HaveTheOtherSizesOfTheirFamilyByPreset) {
  const std::tuple<const char*, const char*, int64_t> sizes[] = {
      {"qwen2", "7b", 7615616512},      {"qwen3", "8b", 8190735360},    {"mistral", "7b-v0.1", 7241732096},
      {"ministral3", "8b", 8489553920}, {"gemma2", "9b", 9241705984},   {"gemma3", "12b", 11766034176},
      {"olmo2", "7b", 7298617344},      {"phi3", "phi-4", 14659507200}, {"granite", "3.3-8b", 8170864640}};
  for (const auto& [recipe, preset, num_params] : sizes) {
    const Outcome planned =
        shell(std::string("tycho plan --json machine=h100 --ranks 8 " TYCHO_SOURCE_DIR "/recipes/") + recipe +
              ".lua preset=" + preset);
    ASSERT_EQ(planned.code, 0) << recipe << "\n" << planned.output;
    const Json plan = Json::parse(planned.output);
    EXPECT_EQ(plan.at("num_params").get<int64_t>(), num_params) << recipe;
    EXPECT_LE(plan.at("training_bytes"), int64_t{79} << 30) << recipe;
  }
}

TEST_F(ShippedRecipesTest, CheckpointsTakeWhatWasMeasuredOn256Gpus) {
  // LLM Foundry's walk-through on Slurm: "30b 1.31GiB x 256 = 336GiB", "70b 2.83GiB x 256 = 725GiB".
  for (const auto& [recipe, gib, gib_of_rank] :
       {std::tuple{"mpt-30b", 336.0, 1.31}, {"mpt-70b", 725.0, 2.83}}) {
    const Outcome planned =
        shell(std::string("tycho plan --json --ranks 256 " TYCHO_SOURCE_DIR "/recipes/") + recipe + ".lua");
    ASSERT_EQ(planned.code, 0) << planned.output;
    const Json plan = Json::parse(planned.output);
    EXPECT_EQ(plan.at("num_ranks"), 256);
    const double bytes = plan.at("checkpoint_bytes").get<double>();
    EXPECT_NEAR(bytes / (1 << 30) / gib, 1, 0.01) << recipe;
    EXPECT_NEAR(bytes / (1 << 30) / 256 / gib_of_rank, 1, 0.01) << recipe;
  }
}

/// As they are shipped, with their own mesh, micro-batch and recompute.
TEST_F(ShippedRecipesTest, FitNodesOfEightH100) {
  const std::map<std::string, int> more_nodes = {
      {"mpt-30b", 2}, {"mpt-70b", 4}, {"llama-70b", 4}, {"finetune/mpt-30b", 9}};
  int count = 0;
  const std::filesystem::path recipes = TYCHO_SOURCE_DIR "/recipes";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(recipes)) {
    if (entry.path().extension() != ".lua") continue;
    const std::string name = entry.path().lexically_relative(recipes).replace_extension();
    if (name.starts_with("sweeps/")) continue;    // of recipes that are here
    if (name.starts_with("speedrun/")) continue;  // of one CPU
    // Modules, and lists of tasks.
    if (name.starts_with("optim/") || name.starts_with("loss/") || name.starts_with("tasks/")) continue;
    const std::string model =
        name.starts_with("finetune/") ? "export TYCHO_MODEL=" + model_of(entry.path().stem()) + "; " : "";
    const int ranks = 8 * (more_nodes.count(name) > 0 ? more_nodes.at(name) : 1);
    const Outcome planned = shell(model + "tycho plan --json machine=h100 --ranks " + std::to_string(ranks) +
                                  " " + entry.path().string());
    ASSERT_EQ(planned.code, 0) << name << "\n" << planned.output;
    EXPECT_LE(Json::parse(planned.output).at("training_bytes"), int64_t{79} << 30) << name;
    ++count;
  }
  EXPECT_GE(count, 21);
}

TEST_F(ShippedRecipesTest, GiveCheckNothingToWarnOfButMissingData) {
  int count = 0;
  for (const char* data : {"data", "runs/demo-data"}) {  // where the recipes expect them
    std::filesystem::create_directories(folder_ / data);
    write("{}", std::string(data) + "/tokenizer.json");
  }
  std::filesystem::create_directories(folder_ / "runs/speedrun-data");
  for (const char* tokens : {"train", "val"})
    write(std::string(200, '\0'), "runs/speedrun-data/" + std::string(tokens) + ".bin");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TYCHO_SOURCE_DIR "/recipes")) {
    if (entry.path().extension() != ".lua") continue;
    const Outcome checked = here("tycho check " + entry.path().string());
    std::istringstream lines(checked.output);
    for (std::string line; std::getline(lines, line);) {
      const bool is_of_data = line.find("index.json does not exist yet") != std::string::npos;
      EXPECT_TRUE(is_of_data || line.find("warning:") == std::string::npos) << line;
    }
    ++count;
  }
  EXPECT_GT(count, 16);
}

TEST_F(ShippedRecipesTest, AreWhatTheJsonSchemaDescribes) {
  const Json schema = Json::parse(shell("tycho schema").output);
  const JsonSchemaChecker checker(schema);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TYCHO_SOURCE_DIR "/recipes")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".lua") continue;
    const Outcome shown = here("tycho config " + path + " --resolved");
    ASSERT_EQ(shown.code, 0) << shown.output;
    const Json resolved = Json::parse(shown.output);
    EXPECT_EQ(checker.problems_of(resolved), std::vector<std::string>{}) << path;
    Json changed = resolved;
    changed["optimizer"]["learning_rate"] = 1;
    if (!changed["optimizer"].contains("base")) {  // kinds of the recipe have keys of their own
      EXPECT_EQ(checker.problems_of(changed), std::vector<std::string>{"/optimizer/learning_rate: unknown"});
    }
    changed = resolved;
    changed["max_duration"] = "10 batches";
    EXPECT_EQ(checker.problems_of(changed), std::vector<std::string>{"/max_duration: pattern"});
    ++count;
  }
  EXPECT_GT(count, 25);
}

TEST_F(ShippedRecipesTest, EvaluateMptsAsOftenAsIsPublished) {
  const std::pair<const char*, const char*> published[] = {
      {"125m", "500ba"}, {"350m", "1000ba"}, {"760m", "2000ba"}, {"1b", "2000ba"},  {"3b", "5000ba"},
      {"7b", "5000ba"},  {"13b", "5000ba"},  {"30b", "10000ba"}, {"70b", "10000ba"}};
  for (const auto& [name, every] : published) {
    const Outcome shown =
        shell(std::string("tycho config --json " TYCHO_SOURCE_DIR "/recipes/mpt-") + name + ".lua eval");
    ASSERT_EQ(shown.code, 0) << shown.output;
    std::map<std::string, Json> values;
    for (const Json& row : Json::parse(shown.output)) values[row.at("path")] = row.at("value");
    EXPECT_EQ(values["eval.every"], every) << name;
  }
}

TEST_F(ShippedRecipesTest, FinetuneTheModelsThatTheyName) {
  const auto plan = [&](const std::string& recipe) {
    const Outcome planned =
        shell("export TYCHO_MODEL=" + model_of(recipe) +
              "; tycho plan --json " TYCHO_SOURCE_DIR "/recipes/finetune/" + recipe + ".lua");
    EXPECT_EQ(planned.code, 0) << planned.output;
    return planned.code == 0 ? Json::parse(planned.output) : Json();
  };
  EXPECT_EQ(plan("mpt-7b").value("num_params", 0LL), 6649286656);
  EXPECT_EQ(plan("mpt-30b").value("num_params", 0LL), 29957200896);
  EXPECT_EQ(plan("llama-3-8b").value("num_params", 0LL), 8030261248);
  EXPECT_EQ(plan("smollm2-135m").value("num_params", 0LL), 134515008);
  EXPECT_EQ(plan("qwen3-0.6b").value("num_params", 0LL), 596049920);
}

}  // namespace
}  // namespace tycho
