// Whole files as recipes: against golden files, and what is refused.
#include "bindings/import/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

const std::string kGolden = TYCHO_SOURCE_DIR "/tests/golden/import/";

/// A YAML of LLM Foundry with these lines at its end.
std::string foundry(const std::string& lines) {
  return "max_duration: 10ba\ntrain_loader: {name: text}\n" + lines;
}

std::string lua_of(const std::string& lines) { return import_recipe("x.yaml", foundry(lines)).lua; }

std::string refusal(const std::string& text, const std::string& file = "x.yaml") {
  try {
    return "imported:\n" + import_recipe(file, text).lua;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Import, MakesTheGoldenRecipes) {
  for (const char* name : {"foundry.yaml", "titan.toml", "nanotron.yaml"}) {
    const std::string lua = import_recipe(name, read_file(kGolden + name)).lua;
    EXPECT_EQ(lua, read_file(kGolden + name + ".lua")) << name;
  }
}

TEST(Import, Fp8OfTransformerEngineIsTensorwise) {
  const Imported made = import_recipe("x.yaml", foundry("precision: amp_fp8\n"));
  EXPECT_CONTAINS(made.lua, "r.precision = \"bf16\"\nr.fp8 = t.fp8 { recipe = \"tensorwise\" }\n");
  EXPECT_CONTAINS(std::accumulate(made.notes.begin(), made.notes.end(), std::string()), "Transformer Engine");
}

TEST(Import, NamesEveryKeyThatItCannotHonour) {
  const std::string text =
      refusal(foundry("precision: amp_fp16\nfsdp_config:\n  cpu_offload: true\n  sharding_strateg: "
                      "X\ncallbacks:\n  mine: {}\n"));
  EXPECT_CONTAINS(text, "\n4 keys of x.yaml cannot be imported; nothing was written.");
  EXPECT_CONTAINS(text,
                  "x.yaml:3:12: precision = amp_fp16: Tycho has amp_bf16, bf16, fp32, amp_fp8\n"
                  "   3 | precision: amp_fp16\n     |            ^^^^^^^^\n");
  EXPECT_CONTAINS(text, "x.yaml:5:16: fsdp_config.cpu_offload = true: is not supported\n");
  EXPECT_CONTAINS(text, "x.yaml:6:3: fsdp_config.sharding_strateg = X: unknown key");
  EXPECT_CONTAINS(text, "did you mean \"sharding_strategy\"?");
  EXPECT_CONTAINS(text, "callbacks.mine: unknown key");
}

TEST(Import, KnowsWhatEachLineOfTheRecipeWasMadeOf) {
  const std::string text = foundry(
      "variables: {lr: 1e-3}\nseed: &s 5  # chosen\n\noptimizer:\n  name: decoupled_adamw\n  lr: "
      "${variables.lr}\n  betas: [0.9, 0.95]\nmax_seq_len: \"64\"\neval_first: *s\n");
  const Imported made = import_recipe("x.yaml", text, {{7, "max_seq_len=32"}});
  const auto place = [&](const std::string& line) {
    const size_t at = made.lua.find(line);
    if (at == std::string::npos) return "no line " + line + " in\n" + made.lua;
    const auto number = static_cast<size_t>(
        std::count(made.lua.begin(), made.lua.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    const SourceLocation& found = made.places.at(number);
    if (found.argument > 0) return fmt::format("argument {}", found.argument);
    return fmt::format("{}:{}+{}", found.line, found.col, found.len);
  };
  EXPECT_EQ(place("r.max_duration"), "1:15+4");
  EXPECT_EQ(place("local lr = 1e-3"), "3:17+4");
  EXPECT_EQ(place("r.seed = 5"), "4:10+1");
  EXPECT_EQ(place("r.optimizer = "), "6:1+9");
  EXPECT_EQ(place("lr = lr"), "8:7+15");
  EXPECT_EQ(place("betas = "), "9:3+5");
  EXPECT_EQ(place("r.seq_len = 32"), "argument 7");
  EXPECT_EQ(place("r.clip.norm = 0"), "0:0+1");
}

TEST(Import, TakesFirstValuesAndNeutralSettings) {
  const std::string lua = lua_of(
      "model:\n  name: mpt_causal_lm\n  norm_type: triton_rmsnorm\n  expansion_ratio: 2\n  attn_config:\n"
      "    attn_temperature_tuning: {floor_scale: 8192, attn_scale: 0.0}\n  ffn_config: {ffn_hidden_size: "
      "64}\n"
      "  init_config:\n    name: xavier_normal_\n    init_gain: 0.5\n    fan_mode: fan_out\n"
      "    init_div_is_residual: 3.0\n    emb_init_uniform_lim: [-0.1, 0.3]\n");
  EXPECT_CONTAINS(lua, "norm = \"rmsnorm\"");
  EXPECT_CONTAINS(lua, "-- expansion_ratio: 2  (taken from ffn_hidden_size)");
  EXPECT_CONTAINS(lua, "(is off)");
  EXPECT_CONTAINS(lua, "-- fan_mode: fan_out  (has no effect here)");
  EXPECT_CONTAINS(lua, "residual_divisor = 3.0");
  EXPECT_CONTAINS(lua, "emb_init_uniform_range = { -0.1, 0.3 }");
}

TEST(Import, WritesTheRotationsThatRopeImplChooses) {
  const auto with = [](const std::string& impl) {
    return lua_of("model:\n  name: mpt_causal_lm\n  attn_config:\n    rope: true\n" + impl +
                  "    rope_dail_config: {type: xpos, pos_idx_in_fp32: true, xpos_scale_base: 256}\n"
                  "    rope_hf_config: {type: linear, factor: 4.0}\n");
  };
  for (const char* impl : {"", "    rope_impl: dail\n"}) {
    EXPECT_CONTAINS(with(impl), "xpos_scale_base = 256,");
    EXPECT_CONTAINS(with(impl), "(no scaling)");
  }
  EXPECT_CONTAINS(with("    rope_impl: hf\n"), "(no xPos)");
  EXPECT_CONTAINS(with("    rope_impl: hf\n"), "type = \"linear\"");
  EXPECT_CONTAINS(
      lua_of("model:\n  name: mpt_causal_lm\n  attn_config: {rope: true, rope_dail_config: {type: "
             "xpos}}\n"),
      "xpos_scale_base = 512,");
  EXPECT_CONTAINS(refusal(foundry("model:\n  name: mpt_causal_lm\n  attn_config: {rope: true, "
                                  "rope_dail_config: {type: yarn}}\n")),
                  "rope_dail_config.type = yarn: LLM Foundry has original and xpos");
  EXPECT_CONTAINS(refusal(foundry("model:\n  name: mpt_causal_lm\n  attn_config: {rope: true, "
                                  "rope_dail_config: {xpos_scale_bas: 3}}\n")),
                  "rope_dail_config.xpos_scale_bas");
}

TEST(Import, WritesBlocksThatDiffer) {
  const std::string model =
      "variables: {window: 1024}\nmodel:\n  name: mpt_causal_lm\n  n_layers: 6\n  learned_pos_emb: false\n"
      "  attn_config:\n    rope: true\n    attn_temperature_tuning: {floor_scale: 4096, attn_scale: 0.1}\n"
      "  block_overrides:\n    # near, then far\n    repeat: 2\n"
      "    order: [{name: near-by}, {name: again, repeat: 2}]\n    overrides:\n"
      "      near-by:\n        attn_config:\n          sliding_window_size: ${variables.window}\n"
      "      again: {attn_config: {reuse_kv_layer_idx: -1, nope: true, attn_temperature_tuning: {attn_scale: "
      "0.3}}}\n";
  const std::string lua = lua_of(model);
  EXPECT_CONTAINS(lua, "  temperature_tuning = {\n");
  EXPECT_CONTAINS(lua, "attn_scale = 0.1,");
  EXPECT_CONTAINS(lua, "  blocks = {\n");
  EXPECT_CONTAINS(lua, "    order = { \"near-by\", \"again\", \"again\" },\n    kinds = {\n");
  EXPECT_CONTAINS(
      lua, "      again = { nope = true, temperature_tuning = { attn_scale = 0.3 }, reuse_kv = 1 },\n");
  EXPECT_CONTAINS(lua, "      [\"near-by\"] = { sliding_window = 1024 },\n");
  EXPECT_CONTAINS(lua_of("model: {name: mpt_causal_lm, block_overrides: null}\n"), "all blocks are the same");
  EXPECT_CONTAINS(
      refusal(foundry("model: {name: mpt_causal_lm, n_layers: 3, block_overrides: {order: [{name: "
                      "a}], overrides: {a: {attn_config: {qk_ln: true}}}}}\n")),
      "model.block_overrides.overrides.a.attn_config.qk_ln = true: cannot differ between blocks");
}

TEST(Import, NamesExperts) {
  const std::string text = refusal(
      foundry("model:\n  name: mpt_causal_lm\n  ffn_config: {ffn_type: mb_dmoe, moe_loss_weight: 0.1}\n"));
  EXPECT_CONTAINS(text,
                  "ffn_type = mb_dmoe: mixtures of experts are not supported; Tycho has mptmlp, mptglu");
  EXPECT_CONTAINS(text, "moe_loss_weight = 0.1: mixtures of experts are not supported");
}

TEST(Import, KeepsComposersDefaults) {
  const std::string lua = lua_of("");
  EXPECT_CONTAINS(lua, "r.clip.norm = 0  -- the YAML does not clip");
  EXPECT_CONTAINS(lua, "r.precision = \"bf16\"  -- LLM Foundry's default");
  EXPECT_CONTAINS(lua_of("optimizer: {name: decoupled_adamw, lr: 1e-3}\n"), "decay_mask = \"all\"");
  EXPECT_EQ(lua_of("optimizer: {name: decoupled_adamw, lr: 1e-3, weight_decay: 0}\n").find("decay_mask"),
            std::string::npos);
}

TEST(Import, SeparatesDocumentsWhereTheModelUsesSequenceIds) {
  const auto lua = [](const char* ids, const char* dataset) {
    return refusal(std::string("max_duration: 10ba\ntrain_loader: {name: text, dataset: {local: d") +
                   dataset + "}}\nmodel: {name: mpt_causal_lm, attn_config: {attn_uses_sequence_id: " + ids +
                   "}}\n");
  };
  EXPECT_CONTAINS(lua("true", ", eos_token_id: 0"), "\n  eos_token_id = 0,\n");
  EXPECT_CONTAINS(lua("true", ", bos_token_id: 1"), "\n  bos_token_id = 1,\n");
  EXPECT_CONTAINS(lua("false", ", eos_token_id: 0"), "-- eos_token_id: 0  (attention spans the whole row");
  EXPECT_CONTAINS(lua("true", ""), "needs eos_token_id or bos_token_id");
}

TEST(Import, MapsTheFinetuningLoader) {
  const auto lua = [](const std::string& dataset) {
    return refusal("max_duration: 1ep\nmax_seq_len: 2048\ntrain_loader:\n  name: finetuning\n  dataset: {" +
                   dataset + "}\n");
  };
  const std::string folder =
      lua("hf_name: ./data/dolly, split: train, max_seq_len: 2048, shuffle: true, packing_ratio: auto, "
          "target_responses: all, decoder_only_format: true, allow_pad_trimming: false");
  EXPECT_CONTAINS(folder, "r.train_data = t.data.chat {");
  EXPECT_CONTAINS(folder, "path = \"./data/dolly\",\n  split = \"train\",");
  EXPECT_CONTAINS(folder, "pack = true,");
  EXPECT_CONTAINS(folder, "packing_ratio = \"auto\",");
  EXPECT_CONTAINS(lua("local: /data/mds, packing_ratio: 4.5"), "packing_ratio = 4.5,");
  EXPECT_CONTAINS(folder, "target_responses = \"all\",");
  const std::string file = lua("hf_name: json, hf_kwargs: {data_files: sft.jsonl}, packing_ratio: null");
  EXPECT_CONTAINS(file, "path = \"sft.jsonl\",");
  EXPECT_CONTAINS(lua("hf_name: json, hf_kwargs: {data_files: sft.jsonl}, allow_pad_trimming: true"),
                  "trim_padding = true,");
  EXPECT_CONTAINS(lua("hf_name: json, hf_kwargs: {data_files: sft.jsonl}, allow_pad_trimming: true, "
                      "packing_ratio: 3.0"),
                  "-- allow_pad_trimming: true  (padding does not change any number");
  EXPECT_EQ(file.find("pack = true"), std::string::npos);
  EXPECT_CONTAINS(lua("hf_name: mosaicml/dolly_hhrlhf, split: train"),
                  "path = \"hf://datasets/mosaicml/dolly_hhrlhf\",\n  split = \"train\",");
  EXPECT_CONTAINS(lua("hf_name: a/b/c, split: train"), "is neither a folder here nor OWNER/NAME");
  EXPECT_CONTAINS(lua("hf_name: a--b/c, split: train"), "expected a name without");
  EXPECT_CONTAINS(lua("hf_name: tatsu-lab/alpaca, split: train"), "with a function of Python");
  EXPECT_CONTAINS(lua("hf_name: a/b, split: train, hf_kwargs: {data_files: x.jsonl}"),
                  "data_files: hf://datasets/OWNER/NAME/PATH");
  EXPECT_CONTAINS(lua("hf_name: ./x"), "needs split");
  EXPECT_CONTAINS(lua("hf_name: json"), "needs hf_kwargs.data_files");
  EXPECT_CONTAINS(lua("hf_name: ./x, split: a, preprocessing_fn: mine:f"), "no Python runs");
  EXPECT_CONTAINS(lua("hf_name: ./x, split: a, target_prompts: longest"), "Tycho has none, all");
  EXPECT_CONTAINS(lua("local: /data/mds"), "path = \"/data/mds\"");
  EXPECT_CONTAINS(lua("hf_name: ./x, split: a, max_seq_len: 512"), "differs from max_seq_len = 2048");
}

TEST(Import, ReadsBareNumbersAsEpochs) {
  EXPECT_CONTAINS(import_recipe("x.yaml", "train_loader: {name: text}\nmax_duration: 2\n").lua,
                  "r.max_duration = \"2ep\"");
  EXPECT_CONTAINS(refusal(foundry("save_interval: 1ep\n")), "this works only if max_duration");
}

TEST(Import, MakesLocalsOfReferences) {
  const std::string lua = lua_of(
      "variables:\n  a: ${variables.b}\n  b: 3\n  end: 4\nseed: ${variables.a}\n"
      "max_seq_len: ${variables.end}\nrun_name: x-${seed}-${variables.a}\n");
  EXPECT_CONTAINS(lua, "local b = 3\n");
  EXPECT_CONTAINS(lua, "local end_ = 4\n");
  EXPECT_CONTAINS(lua, "r.seed = b\n");
  EXPECT_CONTAINS(lua, "r.run_name = \"x-\" .. b .. \"-\" .. b\n");
}

TEST(Import, RefusesReferencesThatLeadNowhere) {
  EXPECT_CONTAINS(refusal(foundry("seed: ${variables.x}\n")),
                  ": ${variables.x} refers to a key that does not exist");
  EXPECT_CONTAINS(refusal(foundry("seed: ${seed}\n")), "refers to itself");
  EXPECT_CONTAINS(refusal(foundry("a: ${b}\nb: ${a}\nseed: ${a}\n")), "refers to itself");
  EXPECT_CONTAINS(refusal(foundry("run_name: x${run_name}\n")), "refers to itself");
  EXPECT_CONTAINS(refusal(foundry("seed: ${oc.env:SEED}\n")), "calls a resolver");
  const std::string many =
      refusal(foundry("seed: ${oc.env:SEED}\nrun_name: x${variables.x}\nno_such_key: 1\n"));
  EXPECT_CONTAINS(many, "\n3 keys of x.yaml cannot be imported");
  EXPECT_CONTAINS(many, "seed = ${oc.env:SEED}: ${oc.env:SEED} calls a resolver");
  EXPECT_CONTAINS(many, "run_name = x${variables.x}: ${variables.x} refers to a key that does not exist");
  EXPECT_CONTAINS(many, "no_such_key = 1: unknown key");
  EXPECT_CONTAINS(refusal(foundry("fsdp_config: ${fsdp_config}\n")), "");
}

TEST(Import, ReadsTheDataWhereItIs) {
  const auto data = [](const std::string& remote) {
    return refusal("max_duration: 1ba\ntrain_loader:\n  name: text\n  dataset: {local: /tmp/x, remote: " +
                   remote + "}\n");
  };
  EXPECT_CONTAINS(data("/data/c4"), "local_dir = \"/data/c4\"");
  EXPECT_CONTAINS(data("null"), "local_dir = \"/tmp/x\"");
  EXPECT_CONTAINS(data("s3://bucket/x"), "  local_dir = \"/tmp/x\",\n  remote = \"s3://bucket/x\",\n");
  EXPECT_CONTAINS(data("gs://bucket/x"), "  local_dir = \"/tmp/x\",\n  remote = \"gs://bucket/x\",\n");
  EXPECT_CONTAINS(refusal("max_duration: 1ba\ntrain_loader: {name: text, dataset: {remote: 's3://b/x'}}\n"),
                  "expected local too");
}

TEST(Import, MapsModelsOfHuggingFace) {
  const std::string by_name = lua_of(
      "model: {name: hf_causal_lm, pretrained: false, pretrained_model_name_or_path: "
      "meta-llama/Llama-3.1-8B, config_overrides: {num_hidden_layers: 2}}\n");
  EXPECT_CONTAINS(by_name, "r.model = t.model.llama {");
  EXPECT_CONTAINS(by_name, "layers = 2,");
  EXPECT_EQ(by_name.find("layers = 32"), std::string::npos);
  EXPECT_CONTAINS(lua_of("model: {name: hf_causal_lm, pretrained_model_name_or_path: ./m}\n"),
                  "path = \"./m\"");
  EXPECT_CONTAINS(lua_of("model: {name: hf_causal_lm, pretrained_model_name_or_path: x/y}\n"),
                  "path = \"hf://x/y\"");
  EXPECT_CONTAINS(refusal(foundry("model: {name: hf_t5}\n")), "Tycho has mpt_causal_lm and hf_causal_lm");
}

/// eval_loader or eval_loaders: a list of these loaders.
std::string eval_list(const std::string& items, const std::string& key = "eval_loaders") {
  return refusal(foundry(key + ":\n" + items + "eval_interval: 5ba\n"));
}

TEST(Import, MakesASetOfEveryLoaderThatIsEvaluated) {
  const std::string items =
      "- label: c4\n  name: text\n  dataset: {local: /tmp/x, remote: /data/c4, split: val}\n"
      "- name: text  # long ones\n  dataset: {local: /data/books}\n  label: books-en/long\n";
  for (const char* key : {"eval_loader", "eval_loaders"}) {
    const std::string lua = eval_list(items, key);
    EXPECT_CONTAINS(lua,
                    "r.eval_data.c4 = t.data.mds {\n  -- local: /tmp/x  (read where it is, without a copy)\n"
                    "  local_dir = \"/data/c4\",\n  split = \"val\",\n  truncate = true,\n}");
    EXPECT_CONTAINS(lua, "r.eval_data[\"books-en_long\"] = t.data.mds {");
    EXPECT_CONTAINS(lua, "local_dir = \"/data/books\"");
    EXPECT_CONTAINS(lua, "r.eval.every = \"5ba\"");
  }
  const Imported renamed = import_recipe("x.yaml", foundry("eval_loaders:\n" + items));
  EXPECT_NE(std::find_if(renamed.notes.begin(), renamed.notes.end(),
                         [](const std::string& note) {
                           return note.find("the set is called books-en_long") != std::string::npos;
                         }),
            renamed.notes.end());
  EXPECT_CONTAINS(lua_of("eval_loader: {name: text, dataset: {local: v}}\n"),
                  "r.eval_data.val = t.data.mds {");
}

TEST(Import, LoadersThatAreEvaluatedHaveNamesOfTheirOwn) {
  const std::string one = "- {name: text, dataset: {local: v}", two = one + "}\n";
  EXPECT_CONTAINS(eval_list(two), "eval_loaders.0: expected a label, which names the metrics of the set");
  EXPECT_CONTAINS(eval_list(one + ", label: a}\n" + one + ", label: a}\n"),
                  "eval_loaders.1.label = a: another set is called a");
  EXPECT_CONTAINS(eval_list(one + ", label: loss}\n"), "no set can be called loss");
  EXPECT_CONTAINS(eval_list("- {name: finetuning, label: a, dataset: {hf_name: ./d, split: test}}\n"),
                  "path = \"./d\",\n  split = \"test\",");
  EXPECT_CONTAINS(eval_list("- {name: denoising, label: a}\n"), "eval_loaders.0.name = denoising: expected");
  EXPECT_CONTAINS(lua_of("eval_loaders: null\neval_interval: 3\n"), "(there is no eval_loader)");
}

TEST(Import, AppliesArgumentsOfTheOtherSystemFirst) {
  const std::vector<PinArgument> pins = {{2, "variables.n=5"},
                                         {3, "optimizer.lr=1e-2"},
                                         {4, "fsdp_config.state_dict_type=sharded"},
                                         {5, "optimizer.lr*=2"},
                                         {6, "model.width=64"},
                                         {7, "yamlUpdates.train_loader\\.dataset\\.split=train_small"}};
  const Imported made = import_recipe(
      "x.yaml",
      foundry("variables: {n: 3}\nseed: ${variables.n}\noptimizer: {name: decoupled_adamw, lr: 1}\n"), pins);
  EXPECT_CONTAINS(made.lua, "local n = 5  -- argument 2");
  EXPECT_CONTAINS(made.lua, "lr = 1e-2,  -- argument 3");
  EXPECT_CONTAINS(made.lua, "split = \"train_small\",  -- argument 7");
  ASSERT_EQ(made.pins.size(), 2u);
  EXPECT_EQ(made.pins[0].text, "optimizer.lr*=2");
  EXPECT_EQ(made.pins[1].text, "model.width=64");
}

TEST(Import, WritesBlocksOfAConfigJsonAsLua) {
  const std::string lua =
      import_recipe("config.json", R"({"model_type": "mpt", "architectures": ["MPTForCausalLM"],
    "d_model": 64, "n_heads": 4, "n_layers": 2, "expansion_ratio": 4, "max_seq_len": 128, "vocab_size": 1000,
    "learned_pos_emb": false, "attn_config": {"rope": true, "attn_impl": "flash"}, "block_overrides": {
      "order": [{"name": "default"}, {"name": "near-again"}],
      "overrides": {"near-again": {"attn_config": {"sliding_window_size": 16, "reuse_kv_layer_idx": -1}}}}})")
          .lua;
  EXPECT_CONTAINS(lua,
                  "blocks = { order = { \"default\", \"near-again\" }, "
                  "kinds = { [\"near-again\"] = { sliding_window = 16, reuse_kv = 1 } } }");
}

TEST(Import, ReadsAConfigOfHuggingFace) {
  const std::string lua =
      import_recipe("config.json", read_file(TYCHO_SOURCE_DIR "/tests/golden/hf/llama/config.json")).lua;
  EXPECT_CONTAINS(lua, "r.model = t.model.llama { width = ");
  EXPECT_CONTAINS(lua, "r.max_duration = t.required");
}

TEST(Import, KeepsLineBreaksInsideCommentsAndStrings) {
  const std::string lua = lua_of("variables: {\"a\\nos.exit()\": \"b\\nc\"}\nrun_name: \"x\\ny\"\n");
  EXPECT_EQ(lua.find("\nos.exit"), std::string::npos) << lua;
  EXPECT_CONTAINS(lua, "r.run_name = \"x\\ny\"");
}

TEST(Import, AWarmUpOfTorchTitanEndsWithTheRun) {
  const auto made = [](const std::string& warmup) {
    return import_recipe("x.toml",
                         "[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n[training]\nsteps = 100\n"
                         "[lr_scheduler]\nwarmup_steps = " +
                             warmup + "\n");
  };
  EXPECT_CONTAINS(made("200").lua, "t_warmup = \"100ba\"");
  ASSERT_FALSE(made("200").notes.empty());
  const std::vector<std::string> notes = made("200").notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("the warm-up is longer than the run: it takes all 100 steps") != std::string::npos;
  }));
  EXPECT_CONTAINS(made("100").lua, "t_warmup = \"100ba\"");
  EXPECT_CONTAINS(made("99").lua, "t_warmup = \"99ba\"");
}

TEST(Import, TakesTheParametersOfAFileForMcli) {
  const std::string head = "# about the machines\nname: x\nimage: y\ncompute:\n  gpus: 8\nparameters:";
  const std::string body = "  # about the run\n  max_duration: 10ba\n  train_loader: {name: text}\n";
  const Imported made = import_recipe("x.yaml", head + "\n" + body + "command: z\n# the end\n");
  EXPECT_CONTAINS(made.lua, "-- about the run\nr.max_duration = \"10ba\"\n");
  EXPECT_EQ(made.lua.find("about the machines"), std::string::npos) << made.lua;
  EXPECT_EQ(made.lua.find("the end"), std::string::npos) << made.lua;
  EXPECT_EQ(std::ranges::count(
                made.notes, "line 6  parameters: what is below it is imported; the other keys are for mcli"),
            1);
  EXPECT_CONTAINS(
      refusal(head + " {}\ncommand: z\n"),
      "expected the keys of a run below parameters:, got none. This file is for mcli: import the YAML "
      "that its command names");
  EXPECT_CONTAINS(refusal(head + "\n" + body + "  precison: x\n"), "x.yaml:10:3: precison = x: unknown key");
}

TEST(Import, RefusesFilesOfNoKnownSystem) {
  EXPECT_CONTAINS(refusal("a: 1\n"), "expected an LLM Foundry training YAML");
  EXPECT_CONTAINS(refusal("- 1\n"), "expected an LLM Foundry training YAML");
  EXPECT_CONTAINS(refusal("max_duration: \xff\n"), "line 1: this is not UTF-8 text");
  EXPECT_CONTAINS(refusal("job = 1\n", "x.toml"), "expected a section [model]");
  EXPECT_CONTAINS(refusal("optimizer: 3\ntokens: 4\n"), "expected a map of keys");
}

}  // namespace
}  // namespace tycho
