// What a Nanotron YAML says that others do not: stages of data, and where a run resumes.
#include <gtest/gtest.h>

#include "bindings/import/import.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

const std::string kUsual = read_file(TYCHO_SOURCE_DIR "/tests/golden/import/nanotron.yaml");

std::string lua_or_refusal(const std::string& text) {
  try {
    return "imported:\n" + import_recipe("nanotron.yaml", text).lua;
  } catch (const Error& error) {
    return error.what();
  }
}

std::string all_of(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

TEST(Nanotron, StagesBecomeStages) {
  const auto with = [&](const std::string& stages) {
    const size_t begin = kUsual.find("data_stages:"), end = kUsual.find("checkpoints:");
    return lua_or_refusal(kUsual.substr(0, begin) + "data_stages:\n" + stages + kUsual.substr(end));
  };
  const std::string two = with(
      "  - {name: stable, start_training_step: 1, data: {seed: 7, dataset: {dataset_folder: [/d/web, "
      "/d/code], "
      "dataset_weights: [0.8, 0.2]}}}\n"
      "  - {name: anneal, start_training_step: 1001, data: {seed: 42, dataset: {dataset_folder: "
      "/d/best}}}\n");
  EXPECT_CONTAINS(
      two,
      "r.train_data = t.data.mds { streams = { { name = \"web\", local_dir = \"/d/web\", proportion = 0.8 }, "
      "{ name = \"code\", local_dir = \"/d/code\", proportion = 0.2 } }, shuffle_seed = 7 }");
  EXPECT_CONTAINS(
      two,
      "r.data_stages = {\n  { name = \"anneal\", start = \"1000ba\", data = t.data.tokens { path = "
      "\"/d/best\" } },\n}\n");
  EXPECT_CONTAINS(with("  - {name: a, start_training_step: 1, data: {dataset: {hf_dataset_or_datasets: "
                       "{org/x: 1, y: 3}}}}\n"),
                  "{ name = \"x\", local_dir = \"data/x\", proportion = 1 }");
  EXPECT_CONTAINS(with("  - {name: a, start_training_step: 5}\n"), "the first stage must begin at step 1");
  EXPECT_CONTAINS(with("  - {name: a, start_training_step: 1}\n  - {name: b, start_training_step: 1}\n"),
                  "stages must begin one after the other");
}

TEST(Nanotron, StagesAfterTheLastStepAreLeftOut) {
  const size_t begin = kUsual.find("data_stages:"), end = kUsual.find("checkpoints:");
  const Imported made = import_recipe("x.yaml", kUsual.substr(0, begin) +
                                                    "data_stages:\n  - {name: a, start_training_step: 1}\n"
                                                    "  - {name: b, start_training_step: 1501}\n" +
                                                    kUsual.substr(end));
  EXPECT_EQ(made.lua.find("r.data_stages"), std::string::npos) << made.lua;
  EXPECT_CONTAINS(all_of(made.notes), "start_training_step: is after the last step: the stage is left out");
}

TEST(Nanotron, ANanosetIsReadAsItIs) {
  const auto with = [&](const std::string& dataset) {
    const size_t begin = kUsual.find("data_stages:"), end = kUsual.find("checkpoints:");
    return lua_or_refusal(kUsual.substr(0, begin) +
                          "data_stages:\n  - {name: a, start_training_step: 1, data: {dataset: {" + dataset +
                          "}}}\n" + kUsual.substr(end));
  };
  EXPECT_CONTAINS(with("dataset_folder: /d/web/"),
                  "r.train_data = t.data.tokens { path = \"/d/web/\" }  -- its .ds files, read as they are");
  EXPECT_CONTAINS(with("dataset_folder: [/d/web], dataset_weights: [1], token_size_in_bytes: 4"),
                  "t.data.tokens { path = \"/d/web\", token_bytes = 4 }");
  EXPECT_CONTAINS(with("dataset_folder: {/a/tokenized: 0.8, /b/tokenized/: 0.2}"),
                  "{ name = \"tokenized-1\", local_dir = \"/a/tokenized\", proportion = 0.8 }, "
                  "{ name = \"tokenized-2\", local_dir = \"/b/tokenized/\", proportion = 0.2 }");
}

TEST(Nanotron, ARunThatEndsWithinTheDecayIsAPartOfALongerOne) {
  std::string text = kUsual;
  text.insert(text.find("    lr_decay_style:"), "    lr_decay_steps: 2000\n");
  const Imported made = import_recipe("x.yaml", text);
  EXPECT_CONTAINS(made.lua, "r.max_duration = \"2150ba\"  -- where the decay ends\n");
  EXPECT_CONTAINS(made.lua, "t_decay = \"2000ba\", t_max = \"2150ba\"");
  EXPECT_CONTAINS(all_of(made.notes), "`tycho run FILE --until 1500ba` ends where Nanotron does");
}

TEST(Nanotron, SequencesMayBeLongerThanItsPositions) {
  const auto with = [](const std::string& positions) {
    std::string text = kUsual;
    const std::string line = "    max_position_embeddings: " + positions + "\n";
    return lua_or_refusal(text.insert(text.find("    hidden_size:"), line));
  };
  EXPECT_CONTAINS(with("64"), "max_seq_len = 128,  -- tokens.sequence_length, which is longer");
  EXPECT_CONTAINS(with("4096"), "max_seq_len = 4096,");
}

TEST(Nanotron, RecomputedExpertsAreNoExperts) {
  std::string text = kUsual;
  const std::string made = lua_or_refusal(text.insert(text.find("  dp: "), "  moe_layer_recompute: false\n"));
  EXPECT_CONTAINS(made, "-- parallelism.moe_layer_recompute: false  (there are no experts)");
}

TEST(Nanotron, MayResumeFromWhereItSaves) {
  std::string text = kUsual;
  const size_t at = text.find("checkpoints_path:"), end = text.find('\n', at);
  ASSERT_NE(at, std::string::npos);
  const std::string indent = text.substr(text.rfind('\n', at) + 1, at - text.rfind('\n', at) - 1);
  const std::string path = text.substr(at + 17, end - at - 17);
  const auto with = [&](const std::string& folder) {
    std::string changed = text;
    const size_t old = changed.find("resume_checkpoint_path:");
    if (old != std::string::npos)
      changed.erase(old - indent.size(), changed.find('\n', old) - old + indent.size() + 1);
    return changed.insert(changed.find('\n', changed.find("checkpoints_path:")) + 1,
                          indent + "resume_checkpoint_path:" + folder + "\n");
  };
  EXPECT_CONTAINS(import_recipe("x.yaml", with(path)).lua, "a run resumes from its newest checkpoint there");
  EXPECT_CONTAINS(lua_or_refusal(with(" elsewhere")), "resume = PATH takes a Tycho checkpoint");
}

TEST(ForeignImport, TakesContextParallel) {
  const std::string yaml = "tokens: {train_steps: 5}\nparallelism: {dp: 2, context_parallel_size: 2}\n";
  EXPECT_CONTAINS(import_recipe("x.yaml", yaml).lua, "r.parallel.cp = 2");
  const auto titan = [](const std::string& line) {
    const Imported made = import_recipe(
        "x.toml",
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nglobal_batch_size = 8\n[parallelism]\n" +
            line);
    return made.lua + (made.notes.empty() ? "no notes" : made.notes[0]);
  };
  EXPECT_CONTAINS(titan("context_parallel_degree = 4\n"), "r.parallel.cp = 4");
  EXPECT_CONTAINS(titan("context_parallel_rotate_method = \"allgather\"\n"), "no notes");
  const std::string ring = "context_parallel_rotate_method = \"alltoall\"\n";
  EXPECT_CONTAINS(titan("context_parallel_degree = 4\n" + ring), "r.parallel.cp_attention = \"ring\"");
  EXPECT_EQ(titan("context_parallel_degree = 1\n" + ring).find("r.parallel.cp_attention"), std::string::npos);
  EXPECT_EQ(titan(ring).find("r.parallel.cp_attention"), std::string::npos);
}

TEST(Nanotron, KindsOfTensorParallel) {
  const auto with = [](const std::string& mode) {
    std::string text = kUsual;
    const size_t at = text.find("  tp: "), end = text.find('\n', at);
    return lua_or_refusal(text.insert(end + 1, "  tp_mode: " + mode + "\n"));
  };
  ASSERT_EQ(kUsual.find("tp_mode"), std::string::npos);
  EXPECT_CONTAINS(with("ALL_REDUCE"), "r.parallel.sequence_parallel = false");
  EXPECT_CONTAINS(with("REDUCE_SCATTER"), "r.parallel.sequence_parallel = true");
  EXPECT_CONTAINS(with("reduce_scatter"), "r.parallel.sequence_parallel = true");
  EXPECT_CONTAINS(with("RING"), "expected REDUCE_SCATTER or ALL_REDUCE");
}

/// Nanotron 0.3 has the optimizer's numbers beside optimizer_factory.
TEST(Nanotron, OlderFilesHaveNoOptimizerFactory) {
  std::string text = kUsual;
  const size_t at = text.find("  optimizer_factory:"), end = text.find("  zero_stage:");
  text.replace(at, end - at,
               "  adam_beta1: 0.8\n  adam_beta2: 0.95\n  adam_eps: 1.0e-07\n  torch_adam_is_fused: true\n");
  EXPECT_CONTAINS(lua_or_refusal(text), "betas = { 0.8, 0.95 }, eps = 1e-07");
}

TEST(Nanotron, QwenWithoutBiasesIsLlama) {
  const auto with = [](const std::string& lines) {
    std::string text = kUsual;
    return lua_or_refusal(text.insert(text.find("    hidden_size:"), lines));
  };
  const std::string qwen = with(
      "    is_qwen2_config: true\n    _attn_implementation: sdpa\n    _fused_rms_norm: true\n"
      "    _fused_rotary_emb: true\n    _use_qkv_packed: true\n    attention_bias: false\n"
      "    no_rope_layer: null\n    sliding_window_size: null\n    flex_attention_mask: null\n"
      "    moe_config: null\n    z_loss_enabled: false\n    z_loss_coefficient: 0.0001\n");
  EXPECT_CONTAINS(qwen, "r.model = t.model.llama {");
  EXPECT_CONTAINS(with("    attention_bias: true\n"), "biases of attention are not supported");
  EXPECT_CONTAINS(with("    no_rope_layer: 4\n"), "layers without positions are not supported");
  EXPECT_CONTAINS(with("    z_loss_enabled: true\n"), "z-loss is not supported");
}

TEST(Nanotron, AnArgumentWithOneValueInPlaceOfAMapIsForTheKeyOfTycho) {
  const std::vector<PinArgument> pins = {{2, "tokenizer=data/tokenizer.json"},
                                         {3, "optimizer=lion{betas={0.9, 0.95}}"},
                                         {4, "tokenizer={tokenizer_name_or_path: openai-community/gpt2}"},
                                         {5, "logging=null"}};
  const Imported made =
      import_recipe("nanotron.yaml", kUsual + "tokenizer: {tokenizer_name_or_path: gpt2}\n", pins);
  EXPECT_CONTAINS(made.lua, "r.tokenizer = \"hf://openai-community/gpt2\"");
  ASSERT_EQ(made.pins.size(), 2u);
  EXPECT_EQ(made.pins[0].text, "tokenizer=data/tokenizer.json");
  EXPECT_EQ(made.pins[1].text, "optimizer=lion{betas={0.9, 0.95}}");
}

}  // namespace
}  // namespace tycho
