// LLM Foundry's keys, one by one: what becomes of them, and what a reader is told.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "bindings/import/import.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

std::string with_text_loader(const std::string& lines) {
  return "max_duration: 10ba\ntrain_loader: {name: text, dataset: {local: x}}\n" + lines;
}

/// The recipe with its notes below it, or what was wrong.
std::string imported(const std::string& text, const std::vector<PinArgument>& pins = {}) {
  try {
    const Imported made = import_recipe("x.yaml", text, pins);
    std::string out = made.lua + "notes:\n";
    for (const std::string& note : made.notes) out += note + "\n";
    return out;
  } catch (const Error& error) {
    return error.what();
  }
}
std::string of(const std::string& lines) { return imported(with_text_loader(lines)); }

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
  EXPECT_CONTAINS(of("fsdp_config: {sharding_strategy: SOME}\n"), "wanted FULL_SHARD, SHARD_GRAD_OP");
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
  EXPECT_CONTAINS(of("fsdp_config: {mixed_precision: PURE}\n"),
                  "fsdp_config.mixed_precision: reductions and master weights are fp32 here");
  EXPECT_LACKS(of("fsdp_config: {mixed_precision: DEFAULT}\n"), "fsdp_config.mixed_precision: red");
  EXPECT_CONTAINS(of("save_overwrite: true\n"), "save_overwrite: a run resumes from its newest checkpoint");
  EXPECT_CONTAINS(of("autoresume: false\n"), "autoresume: a run resumes from its newest checkpoint");
  EXPECT_CONTAINS(of("loggers: {wandb: {project: p}}\n"), "loggers.wandb: nothing is sent there");
  EXPECT_CONTAINS(of("callbacks: {hf_checkpointer: {save_interval: 1ep}}\n"),
                  "callbacks.hf_checkpointer: nothing is exported during training");
  EXPECT_LACKS(of("callbacks: {speed_monitor: {window_size: 10}}\n"), "line 3");
}

TEST(FoundryImport, WeighsTokensAlike) {
  EXPECT_CONTAINS(of("accumulate_train_batch_on_tokens: true\n"), "(every token has the same weight)");
  EXPECT_CONTAINS(of("accumulate_train_batch_on_tokens: false\n"),
                  "(all rows of shards have the same number of tokens)");
  EXPECT_CONTAINS(imported("max_duration: 1ba\naccumulate_train_batch_on_tokens: false\n"
                           "train_loader: {name: finetuning, dataset: {hf_name: ./d, split: train}}\n"),
                  "accumulate_train_batch_on_tokens = false: weights every micro-batch equally");
}

TEST(FoundryImport, TellsThatTheLastSamplesOfAnEpochAreLeftOut) {
  const auto dropping = [](const char* value) {
    return imported(
        std::string("max_duration: 1ep\ntrain_loader: {name: text, dataset: {local: x}, drop_last: ") +
        value + "}\n");
  };
  EXPECT_CONTAINS(dropping("false"), "train_loader.drop_last: samples at the end of an epoch");
  EXPECT_LACKS(dropping("true"), "train_loader.drop_last:");
  EXPECT_LACKS(of("eval_loader: {name: text, dataset: {local: v}, drop_last: false}\neval_interval: 5ba\n"),
               "eval_loader.drop_last:");
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

TEST(FoundryImport, MapsWhereDataLies) {
  const auto finetuning = [](const std::string& dataset) {
    return imported("max_duration: 1ba\ntrain_loader: {name: finetuning, dataset: {" + dataset + "}}\n");
  };
  EXPECT_CONTAINS(
      finetuning("hf_name: json, split: dev, hf_kwargs: {data_files: {train: a.jsonl, dev: b.jsonl}}"),
      "path = \"b.jsonl\"");
  EXPECT_CONTAINS(finetuning("hf_name: json, hf_kwargs: {data_files: [a.jsonl]}"), "path = \"a.jsonl\"");
  EXPECT_CONTAINS(finetuning("hf_name: json, split: test, hf_kwargs: {data_files: {train: a.jsonl}}"),
                  "has no files of the split test");
  EXPECT_CONTAINS(finetuning("hf_name: ./d, split: train, target_prompts: length>=12"),
                  "target_prompts = \"all\",\n  min_target_prompt = 12,");
  EXPECT_CONTAINS(finetuning("hf_name: ./d, split: train, target_prompts: length>=x"), "wanted none, all or");
  const auto text = [](const std::string& dataset) {
    return imported("max_duration: 1ba\ntrain_loader: {name: text, dataset: {" + dataset + "}}\n");
  };
  EXPECT_CONTAINS(text("streams: {c4: {local: /data/c4, split: train, proportion: 1.0}}, epoch_size: 10k"),
                  "local_dir = \"/data/c4\",\n  split = \"train\",\n");
  EXPECT_CONTAINS(text("local: x, epoch_size: 10k"), "epoch_size = 10000,");
  EXPECT_CONTAINS(text("local: x, epoch_size: 123"), "epoch_size = 123,");
  EXPECT_CONTAINS(text("local: x, epoch_size: lots"), "wanted a number of samples");
  EXPECT_CONTAINS(text("streams: {a: {local: x}, b: {local: y}}"), "mixing data sets is not supported");
  EXPECT_CONTAINS(text("streams: {a: {local: x, repeat: 2}}"), "write epoch_size");
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
  EXPECT_CONTAINS(groups("{lr: 1}"), "wanted param_str_match");
  EXPECT_CONTAINS(of("optimizer: {name: decoupled_adamw, lr: 1, disable_grad: ^wte}\n"), "without its ^");
}

TEST(FoundryImport, MapsCallbacks) {
  const std::string evaluated = "eval_loader: {name: text, dataset: {local: v}}\neval_interval: 50ba\n";
  EXPECT_CONTAINS(of(evaluated + "callbacks: {early_stopper: {monitor: LanguageCrossEntropy, comp: less, "
                                 "dataloader_label: eval, min_delta: 0.01, patience: 120ba}}\n"),
                  "r.callbacks.early_stopper = t.cb.early_stop {\n  metric = \"eval.loss\",\n"
                  "  min_delta = 0.01,\n  patience = 3,\n}");
  EXPECT_CONTAINS(
      of(evaluated + "callbacks: {early_stopper: {monitor: LanguageCrossEntropy, patience: 120ba}}\n"),
      "add comp: less");
  EXPECT_CONTAINS(
      of(evaluated + "callbacks: {early_stopper: {monitor: Accuracy, comp: less, patience: 1ba}}\n"),
      "evaluations measure LanguageCrossEntropy");
  EXPECT_CONTAINS(of(evaluated + "callbacks: {early_stopper: {monitor: LanguagePerplexity, patience: 2}}\n"),
                  "in the same unit as eval_interval = 50ba");
  EXPECT_CONTAINS(
      of("callbacks: {generate_callback: {prompts: [Once, Twice], interval: 500ba, max_new_tokens: 8, "
         "do_sample: true, temperature: 0.7}}\n"),
      "r.callbacks.generate_callback = t.cb.generate {\n  prompts = { \"Once\", \"Twice\" },\n"
      "  every = \"500ba\",\n  max_tokens = 8,\n  -- do_sample: true  (by temperature)\n"
      "  temperature = 0.7,\n}");
  EXPECT_CONTAINS(of("callbacks: {generate_callback: {prompts: [a], interval: 1ba, top_p: 0.9}}\n"),
                  "callbacks.generate_callback.top_p: all tokens can be drawn here");
}

TEST(FoundryImport, MapsEveryWayOfClippingAndEverySchedule) {
  const auto clip = [](const char* type) {
    return of(std::string("algorithms: {gradient_clipping: {clipping_type: ") + type +
              ", clipping_threshold: 0.5}}\n");
  };
  EXPECT_CONTAINS(clip("norm"), "r.clip.norm = 0.5\n");
  EXPECT_CONTAINS(clip("value"), "r.clip.value = 0.5\n");
  EXPECT_CONTAINS(clip("adaptive"), "r.clip.adaptive = 0.5\n");
  EXPECT_CONTAINS(clip("other"), "wanted norm, value or adaptive");
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
  EXPECT_LACKS(made.lua, "seed");
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

TEST(ForeignImport, NotesThatMatricesAndLayersAreNotShared) {
  const auto notes = [](const char* file, const std::string& text) {
    std::string out;
    for (const std::string& note : import_recipe(file, text).notes) out += note + "\n";
    return out;
  };
  const std::string toml = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n";
  EXPECT_CONTAINS(notes("x.toml", toml + "tensor_parallel_degree = 8\n"), "each with the whole model");
  EXPECT_EQ(notes("x.toml", toml + "tensor_parallel_degree = 1\n"), "");
  EXPECT_CONTAINS(notes("x.toml", toml + "[metrics]\nenable_wandb = true\n"), "nothing is sent there");
  EXPECT_CONTAINS(notes("x.yaml", "parallelism: {dp: 2, tp: 4, pp: 1}\ntokens: {train_steps: 5}\n"),
                  "parallelism.tp: ranks train data parallel");
}

}  // namespace
}  // namespace tycho
