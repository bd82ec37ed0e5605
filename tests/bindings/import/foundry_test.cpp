// LLM Foundry's keys, one by one: what becomes of them, and what a reader is told.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/bindings/import/foundry_yaml.h"
#include "tests/trainer/base/temp_dir.h"

namespace tycho {
namespace {

TEST(FoundryImport, ShardsAsFsdpDoes) {
  EXPECT_CONTAINS(of("fsdp_config: {sharding_strategy: FULL_SHARD}\n"), "r.parallel.dp_shard = -1");
  EXPECT_CONTAINS(of("fsdp_config: {mixed_precision: DEFAULT}\n"), "r.parallel.dp_shard = -1");
  EXPECT_LACKS(of("fsdp_config: {sharding_strategy: FULL_SHARD}\n"), "reshard_after_forward");
  const std::string zero_2 = of("fsdp_config: {sharding_strategy: SHARD_GRAD_OP}\n");
  EXPECT_CONTAINS(zero_2, "r.parallel.dp_shard = -1");
  EXPECT_CONTAINS(zero_2, "r.parallel.reshard_after_forward = false");
  const std::string hybrid = of("fsdp_config: {sharding_strategy: HYBRID_SHARD}\n");
  EXPECT_CONTAINS(hybrid, "r.parallel.dp_shard = 8");
  EXPECT_CONTAINS(hybrid, "a model is shared by the ranks of one node, taken to be 8");
  const std::string degrees =
      of("fsdp_config: {sharding_strategy: HYBRID_SHARD, data_parallel_shard_degree: 4, "
         "data_parallel_replicate_degree: 2}\n");
  EXPECT_CONTAINS(degrees, "r.parallel.dp_shard = 4");
  EXPECT_CONTAINS(degrees, "r.parallel.dp_replicate = 2");
  EXPECT_LACKS(degrees, "taken to be 8");
  EXPECT_LACKS(of("fsdp_config: {sharding_strategy: NO_SHARD}\n"), "r.parallel");
  EXPECT_CONTAINS(of("fsdp_config: {sharding_strategy: SOME}\n"), "expected FULL_SHARD, SHARD_GRAD_OP");
}

TEST(FoundryImport, LoggersBecomeSinks) {
  EXPECT_LACKS(of("loggers: {inmemory: {}}\n"), "r.log.sinks");
  const std::string wandb =
      of("loggers:\n  wandb:\n    project: llm  # ours\n    entity: team\n    tags: [a, b]\n    "
         "log_artifacts: true\n"
         "    init_kwargs: {notes: x}\n  mlflow: {}\n");
  for (const char* part :
       {"r.log.sinks = {\n  t.log.jsonl {},\n  t.log.wandb {\n    project = \"llm\",  -- ours\n    entity = "
        "\"team\",",
        "tags = { \"a\", \"b\" },", "names = \"composer\",\n  },",
        "loggers.wandb: runs are written offline here", "loggers.wandb.init_kwargs: not passed on",
        "t.log.mlflow {\n    names = \"composer\",\n    experiment = \"my-mlflow-experiment\",\n  },"})
    EXPECT_CONTAINS(wandb, part);
  EXPECT_CONTAINS(of("loggers: {wandb: null}\n"), "project = \"uncategorized\"");
  EXPECT_CONTAINS(of("loggers: {tensorboard: {}}\n"), "dir = \"tensorboard_logs\"");
  const std::string both =
      of("loggers: {tensorboard: {log_dir: tb, flush_interval: 5}, wandb: {project: p}}\n");
  EXPECT_CONTAINS(both, "dir = \"tb\"");
  EXPECT_CONTAINS(both, "project = \"p\"");
  EXPECT_CONTAINS(of("loggers: {wandb: {proyect: p}}\n"), "did you mean \"project\"");
}

TEST(OtherImports, LoggersBecomeSinks) {
  const std::string toml =
      "[job]\ndump_folder = \"out\"\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n[metrics]\n";
  const auto titan = [&](const std::string& lines) { return import_recipe("x.toml", toml + lines, {}).lua; };
  EXPECT_LACKS(titan("log_freq = 5\nenable_wandb = false\n"), "r.log.sinks");
  EXPECT_CONTAINS(titan("enable_tensorboard = true\n"),
                  "r.log.sinks = {\n  t.log.jsonl {},\n  t.log.tensorboard { dir = \"out/tb\", names = "
                  "\"torchtitan\" },\n}");
  const std::string both = titan("enable_tensorboard = true\nsave_tb_folder = \"x\"\nenable_wandb = true\n");
  EXPECT_CONTAINS(both, "dir = \"out/x\"");
  EXPECT_CONTAINS(both, "t.log.wandb { project = t.env(\"WANDB_PROJECT\", \"torchtitan\")");
  const std::string yaml = "tokens: {train_steps: 5}\ngeneral: {project: words, run: a}\n";
  EXPECT_CONTAINS(import_recipe("x.yaml", yaml, {}).lua,
                  "t.log.wandb { project = \"words\", names = \"nanotron\" },");
  EXPECT_LACKS(import_recipe("x.yaml", "tokens: {train_steps: 5}\ngeneral: {run: a}\n", {}).lua,
               "r.log.sinks");
}

TEST(OtherImports, ShardAsTheirSystemsDo) {
  const std::string toml = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n";
  const auto titan = [&](const std::string& lines) { return import_recipe("x.toml", toml + lines, {}).lua; };
  EXPECT_CONTAINS(titan("data_parallel_shard_degree = 8\nfsdp_reshard_after_forward = \"never\"\n"),
                  "r.parallel.dp_shard = 8");
  EXPECT_CONTAINS(titan("fsdp_reshard_after_forward = \"never\"\n"),
                  "r.parallel.reshard_after_forward = false");
  EXPECT_CONTAINS(titan("fsdp_reshard_after_forward = \"default\"\n"),
                  "r.parallel.reshard_after_forward = true");
}

TEST(FoundryImport, TellsWhatChangesNumbers) {
  EXPECT_CONTAINS(of("fsdp_config: {mixed_precision: FULL}\n"),
                  "fsdp_config.mixed_precision: reductions and master weights are fp32 here");
  EXPECT_CONTAINS(of("precision: amp_bf16\nfsdp_config: {mixed_precision: PURE}\n"),
                  "r.parallel.reduce_dtype = \"bf16\"");
  EXPECT_LACKS(of("fsdp_config: {mixed_precision: DEFAULT}\n"), "fsdp_config.mixed_precision: red");
  EXPECT_CONTAINS(of("save_overwrite: true\n"), "save_overwrite: a run resumes from its newest checkpoint");
  EXPECT_CONTAINS(of("autoresume: false\n"), "autoresume: a run resumes from its newest checkpoint");
  EXPECT_CONTAINS(of("loggers: {mosaicml: {}}\n"), "loggers.mosaicml: nothing is sent there");
  EXPECT_CONTAINS(
      of("callbacks: {hf_checkpointer: {save_interval: 1ep}}\n"),
      "callbacks.hf_checkpointer: a run exports nothing itself: tycho convert RUN FOLDER --follow");
  EXPECT_LACKS(of("callbacks: {speed_monitor: {window_size: 10}}\n"), "line 3");
}

TEST(FoundryImport, AMicroBatchIsAtMostTheBatch) {
  const auto sizes = [](const std::string& micro) {
    return of("global_train_batch_size: 8\ndevice_train_microbatch_size: " + micro + "\n");
  };
  EXPECT_CONTAINS(sizes("16"), "r.micro_batch = \"8sp\"");
  EXPECT_CONTAINS(sizes("16"),
                  "device_train_microbatch_size: is more than global_train_batch_size: lowered to 8");
  EXPECT_CONTAINS(sizes("8"), "r.micro_batch = \"8sp\"");
  EXPECT_LACKS(sizes("8"), "lowered");
  EXPECT_CONTAINS(sizes("auto"), "r.micro_batch = \"auto\"");
}

TEST(FoundryImport, AFolderOfCheckpointsIsTheOneOfTheRunFolder) {
  const auto folder = [](const std::string& path) { return of("save_folder: " + path + "\n"); };
  EXPECT_CONTAINS(folder("./{run_name}/checkpoints"), "r.run_dir = \"./{run_name}\"");
  EXPECT_CONTAINS(folder("/data/{run_name}/x//checkpoints/"), "r.run_dir = \"/data/{run_name}/x\"");
  EXPECT_CONTAINS(folder("/data/checkpoints"), "r.run_dir = \"/data/checkpoints\"");
  EXPECT_CONTAINS(folder("checkpoints"), "r.run_dir = \"checkpoints\"");
  EXPECT_CONTAINS(folder("x/my-checkpoints"), "r.run_dir = \"x/my-checkpoints\"");
  EXPECT_CONTAINS(of("run_name: small\nsave_folder: ${run_name}/checkpoints\n"), "r.run_dir = run_name\n");
  EXPECT_CONTAINS(of("variables: {at: \"{run_name}/checkpoints\"}\nsave_folder: ${variables.at}\n"),
                  "r.run_dir = \"{run_name}\"");
}

TEST(FoundryImport, WeighsTokensAlike) {
  EXPECT_CONTAINS(of("accumulate_train_batch_on_tokens: true\n"), "(every token has the same weight)");
  EXPECT_CONTAINS(of("accumulate_train_batch_on_tokens: false\n"),
                  "(all rows of shards have the same number of tokens)");
  EXPECT_CONTAINS(imported("max_duration: 1ba\naccumulate_train_batch_on_tokens: false\n"
                           "train_loader: {name: finetuning, dataset: {hf_name: ./d, split: train}}\n"),
                  "accumulate_train_batch_on_tokens = false: weights every micro-batch equally");
  const TempDir dir;
  std::ofstream(dir / "tokenizer_config.json") << R"({"eos_token": "<e>", "pad_token": "<e>"})";
  for (const std::string& tokenizer :
       {"{name: " + dir.path() + "}", std::string("{name: gpt2, kwargs: {pad_token: <|endoftext|>}}")})
    EXPECT_CONTAINS(of("accumulate_train_batch_on_tokens: false\ntokenizer: " + tokenizer + "\n"),
                    "and the pad token leaves different numbers of tokens out of them");
}

TEST(FoundryImport, ATokenizerIsAFolderOrItsFile) {
  const auto path_of = [](const std::string& name) { return of("tokenizer: {name: " + name + "}\n"); };
  EXPECT_CONTAINS(path_of("./tok"), "r.tokenizer = \"./tok/tokenizer.json\"");
  EXPECT_CONTAINS(path_of("/tok/"), "r.tokenizer = \"/tok/tokenizer.json\"");
  EXPECT_CONTAINS(path_of("/tok/tokenizer.json"), "r.tokenizer = \"/tok/tokenizer.json\"");
  EXPECT_CONTAINS(path_of("data/tokenizer.json"), "r.tokenizer = \"data/tokenizer.json\"");
  EXPECT_CONTAINS(path_of("./llama/tokenizer.model"), "r.tokenizer = \"./llama/tokenizer.model\"");
  EXPECT_CONTAINS(path_of("EleutherAI/gpt-neox-20b"), "r.tokenizer = \"hf://EleutherAI/gpt-neox-20b\"");
  EXPECT_CONTAINS(path_of("gpt2"), "r.tokenizer = \"hf://gpt2\"");
  EXPECT_CONTAINS(path_of("'hf://a/b@v1'"), "r.tokenizer = \"hf://a/b@v1\"");
  EXPECT_CONTAINS(path_of("a/b/c"), "r.tokenizer = \"a/b/c/tokenizer.json\"");
  EXPECT_CONTAINS(path_of("'a b'"), "names neither a folder nor a model of the hub");
  // The same of a file as of its folder.
  const TempDir dir;
  std::ofstream(dir / "tokenizer_config.json") << R"({"eos_token": "<e>", "pad_token": "<e>"})";
  EXPECT_CONTAINS(path_of(dir / "tokenizer.json"), "tokenizer.name: the pad token is the one");
}

TEST(FoundryImport, TellsThatThePadTokenEndsDocuments) {
  const TempDir dir;
  const auto with_tokenizer = [&](const char* config) {
    std::ofstream(dir / "tokenizer_config.json") << config;
    return of("tokenizer: {name: " + dir.path() + "}\n");
  };
  EXPECT_CONTAINS(with_tokenizer(R"({"eos_token": "<e>", "pad_token": {"content": "<e>"}})"),
                  "tokenizer.name: the pad token is the one that ends documents");
  EXPECT_LACKS(with_tokenizer(R"({"eos_token": "<e>", "pad_token": "<p>"})"), "pad token");
  EXPECT_LACKS(with_tokenizer(R"({"eos_token": "<e>"})"), "pad token");
  EXPECT_LACKS(with_tokenizer("no json"), "pad token");
  EXPECT_CONTAINS(of("tokenizer: {name: gpt2, kwargs: {pad_token: <|endoftext|>}}\n"),
                  "tokenizer.kwargs: where the pad token ends documents");
}

TEST(FoundryImport, FindsModelsInFolders) {
  const TempDir dir;
  const std::filesystem::path before = std::filesystem::current_path(), folder = dir.path();
  std::filesystem::current_path(folder.parent_path());
  const std::string name = folder.filename().string();
  EXPECT_CONTAINS(of("model: {name: hf_causal_lm, pretrained_model_name_or_path: " + name + "}\n"),
                  "t.model.hf {\n  path = \"" + name + "\"");
  std::filesystem::current_path(before);
}

TEST(FoundryImport, MapsAdaptersOfPeft) {
  const auto with = [](const std::string& peft, const char* model = "./x") {
    return of(std::string("model: {name: hf_causal_lm, pretrained_model_name_or_path: ") + model +
              ", pretrained: " + (model[0] == '.' ? "true" : "false") + ", peft_config: {" + peft + "}}\n");
  };
  const std::string all = with(
      "peft_type: LORA, task_type: CAUSAL_LM, r: 16, lora_alpha: 32, lora_dropout: 0.05, use_rslora: true, "
      "bias: none, target_modules: [q_proj, v_proj]");
  for (const char* line : {"}\nr.lora = {\n", "  rank = 16,\n", "  alpha = 32,\n", "  dropout = 0.05,\n",
                           "  rslora = true,\n", "  targets = { \"q_proj\", \"v_proj\" },\n"})
    EXPECT_CONTAINS(all, line);
  const std::string usual = with("target_modules: all-linear");
  EXPECT_CONTAINS(usual, "  rank = 8,\n");
  EXPECT_CONTAINS(usual, "  alpha = 8,\n");
  EXPECT_LACKS(usual, "  targets = ");
  EXPECT_CONTAINS(with("target_modules: '.*q_proj'"), "  targets = { \".*q_proj\" },\n");
  EXPECT_CONTAINS(with("r: 4"), "peft's own choice is [q_proj, v_proj] for Llama");
  EXPECT_CONTAINS(with("target_modules: all-linear, peft_type: IA3"), "Tycho has LoRA");
  EXPECT_CONTAINS(with("target_modules: all-linear, bias: all"),
                  "adapters of linear layers alone are trained");
  EXPECT_CONTAINS(with("target_modules: all-linear, rank: 4"), "unknown key");
  EXPECT_CONTAINS(with("target_modules: all-linear", "gpt2"), "adapters are trained for a model that exists");
}

TEST(FoundryImport, MapsGroupsOfParameters) {
  const std::string lua =
      of("optimizer:\n  name: decoupled_adamw\n  lr: 1e-3\n  disable_grad: [wte, "
         "'^model.transformer.blocks.0']\n"
         "  param_groups:\n  - {param_str_match: norm, weight_decay: 0.0}\n"
         "  - {param_str_match: 'model\\.lm_head', lr: 1e-4, betas: [0.8, 0.9]}\n");
  EXPECT_CONTAINS(lua,
                  "r.param_groups = {\n  { match = \"wte\", freeze = true },\n"
                  "  { match = \"^transformer.blocks.0\", freeze = true },\n"
                  "  { match = \"norm\", weight_decay = 0.0 },\n"
                  "  { match = \"lm_head\", lr = 1e-4, betas = { 0.8, 0.9 } },\n}\n");
  const auto groups = [](const char* group) {
    return of(std::string("optimizer: {name: decoupled_adamw, lr: 1, param_groups: [") + group + "]}\n");
  };
  EXPECT_CONTAINS(groups("{param_str_match: x, eps: 1}"), "only lr, weight_decay and betas can be set");
  EXPECT_CONTAINS(groups("{lr: 1}"), "expected param_str_match");
  EXPECT_CONTAINS(of("optimizer: {name: decoupled_adamw, lr: 1, disable_grad: ^wte}\n"), "without its ^");
}

TEST(FoundryImport, MapsAnAverageOfTheWeights) {
  const auto ema = [](const char* keys) { return of(std::string("algorithms: {ema: {") + keys + "}}\n"); };
  EXPECT_CONTAINS(ema(""), "r.ema.half_life = \"1000ba\"\n");
  EXPECT_CONTAINS(ema("half_life: 50ba, ema_start: 0.1dur, update_interval: 5ba"),
                  "r.ema.half_life = \"50ba\"\nr.ema.start = \"0.1dur\"\nr.ema.every = \"5ba\"\n");
  EXPECT_CONTAINS(ema("half_life: 2ep"), "r.ema.half_life = \"2ep\"\nr.ema.every = \"1ep\"\n");
  const std::string smoothing = ema("half_life: null, smoothing: 0.999");
  EXPECT_CONTAINS(smoothing, "r.ema.decay = 0.999\n");
  EXPECT_EQ(smoothing.find("r.ema.half_life"), std::string::npos) << smoothing;
  EXPECT_EQ(smoothing.find("r.ema.every"), std::string::npos) << smoothing;
  EXPECT_CONTAINS(ema("smoothing: 0.999"), "write half_life: null beside smoothing");
  EXPECT_CONTAINS(ema("half_life: null"), "expected half_life or smoothing, and both are null");
  EXPECT_CONTAINS(ema("halflife: 10ba"), "algorithms.ema.halflife");
}

TEST(FoundryImport, MapsEveryWayOfClippingAndEverySchedule) {
  const auto clip = [](const char* type) {
    return of(std::string("algorithms: {gradient_clipping: {clipping_type: ") + type +
              ", clipping_threshold: 0.5}}\n");
  };
  EXPECT_CONTAINS(clip("norm"), "r.clip.norm = 0.5\n");
  EXPECT_CONTAINS(clip("value"), "r.clip.value = 0.5\n");
  EXPECT_CONTAINS(clip("adaptive"), "r.clip.adaptive = 0.5\n");
  EXPECT_CONTAINS(clip("other"), "expected norm, value or adaptive");
  const auto schedule = [](const std::string& fields) { return of("scheduler: {" + fields + "}\n"); };
  EXPECT_CONTAINS(schedule("name: step, step_size: 10ba, gamma: 0.5"),
                  "t.sched.step {\n  step_size = \"10ba\",\n  gamma = 0.5,\n  compat = \"composer\",");
  EXPECT_CONTAINS(schedule("name: exponential, gamma: 0.5"), "t.sched.exponential {");
  EXPECT_CONTAINS(schedule("name: cosine_annealing_warm_restarts, t_0: 1ep, t_mult: 2"),
                  "t.sched.cosine_restarts {\n  t_0 = \"1ep\",\n  t_mult = 2,");
  EXPECT_CONTAINS(schedule("name: multistep_with_warmup, t_warmup: 1ba, milestones: [5ba, 0.5dur, 1]"),
                  "milestones = { \"5ba\", \"0.5dur\", \"1ep\" },");
  EXPECT_CONTAINS(schedule("name: constant_with_warmup, t_warmup: 1ba, t_max: 1dur"),
                  "-- t_max: 1dur  (the learning rate stays the same)");
  EXPECT_CONTAINS(schedule("name: constant_with_warmup, t_warmup: 1ba, t_max: 5ba"),
                  "which Composer rejects");
  EXPECT_CONTAINS(schedule("name: constant, t_max: 5ba"),
                  "-- t_max: 5ba  (the learning rate stays the same)");
  EXPECT_CONTAINS(schedule("name: constant, alpha: 0.5, t_max: 5ba"), "Composer's factor is 1 from there on");
}

TEST(FoundryImport, RefusesHeadsThatLlmFoundryRefuses) {
  const auto attention = [](const std::string& lines, const char* model = "") {
    return of("model: {name: mpt_causal_lm, d_model: 64, n_heads: 4" + std::string(model) +
              ", attn_config: {" + lines + "}}\n");
  };
  EXPECT_CONTAINS(attention("kv_n_heads: 2"), "is for attn_type: grouped_query_attention");
  EXPECT_CONTAINS(attention("attn_type: multiquery_attention, kv_n_heads: 2"),
                  "cannot be combined with multiquery");
  EXPECT_CONTAINS(attention("attn_type: grouped_query_attention, kv_n_heads: 2"), "kv_heads = 2");
  EXPECT_CONTAINS(attention("rope: true, rope_impl: dail", ", head_dim: 32"), "set rope_impl: hf");
  EXPECT_CONTAINS(attention("rope: true", ", head_dim: 32"), "set rope_impl: hf");
  EXPECT_CONTAINS(attention("rope: true", ", head_dim: 16"), "head_width = 16");
  EXPECT_CONTAINS(attention("rope: true, rope_impl: hf", ", head_dim: 32"), "head_width = 32");
}

TEST(FoundryImport, TakesKeysOutOfTheFile) {
  const std::string yaml = with_text_loader("callbacks: {mine: {}, speed_monitor: {}}\nseed: 3\n");
  const std::vector<PinArgument> pins = {{1, "~callbacks.mine"}, {2, "~seed"}, {3, "~model.dropout"}};
  const Imported made = import_recipe("x.yaml", yaml, pins);
  EXPECT_LACKS(made.lua, "r.seed");
  EXPECT_CONTAINS(made.lua, "speed_monitor");
  ASSERT_EQ(made.pins.size(), 1u);
  EXPECT_EQ(made.pins[0].text, "~model.dropout");
  EXPECT_CONTAINS(imported(yaml, {{1, "~callbacks.mine"}, {4, "~precision"}}),
                  "argument 4: ~precision: the file does not contain it");
}

TEST(FoundryImport, TakesArgumentsForEveryKeyOfTheFile) {
  const std::string yaml =
      "max_duration: 1ba\ntrain_loader: {name: text, dataset: {streams: {c4: {local: a}}}}\n";
  EXPECT_CONTAINS(imported(yaml, {{1, "train_loader.dataset.streams.c4.local=b"}}),
                  "local_dir = \"b\",  -- argument 1");
}

TEST(FoundryImport, WeightsReplaceFirstValues) {
  const std::string yaml = with_text_loader(
      "model: {name: mpt_causal_lm, d_model: 64, init_config: {name: baseline_, init_std: 0.02}}\n");
  EXPECT_CONTAINS(imported(yaml), "init_std = 0.02");
  EXPECT_LACKS(imported(yaml, {{1, "model.weights=./w"}}), "init");
}

}  // namespace
}  // namespace tycho
