// LLM Foundry's finetuning loader: where its rows are, and how they are packed and filled up.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "bindings/import/import.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

/// The recipe, or what was wrong.
std::string chat_recipe(const std::string& dataset, const std::string& more = "") {
  try {
    return import_recipe("x.yaml", "max_duration: 1ba\ntrain_loader: {name: finetuning, dataset: {" +
                                       dataset + "}}\n" + more)
        .lua;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(FoundryChat, AFolderOfDataHasAFileForEachSplit) {
  EXPECT_CONTAINS(chat_recipe("hf_name: json, split: dev, hf_kwargs: {data_dir: /data/sft/}"),
                  "path = \"/data/sft/\",\n  split = \"dev\"");
  EXPECT_CONTAINS(chat_recipe("hf_name: json, hf_kwargs: {data_dir: sft}"),
                  "path = \"sft\",\n  split = \"train\"");
  EXPECT_CONTAINS(chat_recipe("hf_name: ./sft, split: 'train[:10%]'"),
                  "parts and sums of splits are not read");
  EXPECT_CONTAINS(chat_recipe("hf_name: json, hf_kwargs: {data_dir: sft, data_files: a.jsonl}"),
                  "is more than data_files");
  EXPECT_CONTAINS(chat_recipe("hf_name: json"), "needs hf_kwargs.data_files");
}

TEST(FoundryChat, ConfigurationAndRevisionArePartsOfTheNameOnTheHub) {
  EXPECT_CONTAINS(chat_recipe("hf_name: acme/chats, split: train, hf_kwargs: {name: en, revision: v1.0}"),
                  "path = \"hf://datasets/acme/chats@v1.0/en\"");
  EXPECT_CONTAINS(chat_recipe("hf_name: acme/chats, split: train, hf_kwargs: {name: en, revision: null}"),
                  "path = \"hf://datasets/acme/chats/en\"");
  EXPECT_CONTAINS(chat_recipe("hf_name: squad, split: train, hf_kwargs: {name: plain_text}"),
                  "path = \"hf://datasets/squad@main/plain_text\"");
  EXPECT_CONTAINS(
      chat_recipe("hf_name: acme/chats, split: train, hf_kwargs: {revision: refs/convert/parquet}"),
      "path = \"hf://datasets/acme/chats@refs/convert/parquet\"");
  EXPECT_CONTAINS(chat_recipe("hf_name: acme/chats, split: train, hf_kwargs: {revision: fix/it}"),
                  "path = \"hf://datasets/acme/chats@fix%2Fit\"");
  EXPECT_CONTAINS(chat_recipe("hf_name: \"${variables.owner}/chats\", split: train, hf_kwargs: {name: en}",
                              "variables: {owner: acme}\n"),
                  ".. \"/chats\" .. \"/en\"");
  EXPECT_CONTAINS(chat_recipe("hf_name: ./chats, split: train, hf_kwargs: {name: en}"),
                  "is for hf_name: OWNER/NAME, a data set of the hub, got hf_name: ./chats");
  EXPECT_CONTAINS(chat_recipe("hf_name: json, hf_kwargs: {data_dir: sft, revision: v1}"),
                  "got hf_name: json");
}

TEST(FoundryChat, OneStreamIsADataSet) {
  const std::string one =
      chat_recipe("streams: {mine: {remote: 's3://b/sft', local: /cache, split: train, proportion: 1.0}}");
  EXPECT_CONTAINS(one, "path = \"/cache/train\"");
  EXPECT_CONTAINS(one, "remote = \"s3://b/sft/train\"");
  EXPECT_CONTAINS(chat_recipe("split: dev, streams: [{local: /cache}]"), "path = \"/cache/dev\"");
  EXPECT_CONTAINS(chat_recipe("streams: {a: {local: x}, b: {local: y}}"), "join them in one folder");
  EXPECT_CONTAINS(chat_recipe("streams: {a: {local: x, repeat: 2}}"), "use max_duration");
  EXPECT_CONTAINS(chat_recipe("streams: {a: {lokal: x}}"), "unknown key");
}

TEST(FoundryChat, RowsThatAreLeftOver) {
  const std::string local = "local: x, split: train, ";
  EXPECT_CONTAINS(chat_recipe(local + "packing_ratio: 4.5, max_leftover_bins_to_keep: 8"),
                  "max_leftover_rows = 8,");
  EXPECT_LACKS(chat_recipe(local + "packing_ratio: auto, max_leftover_bins_to_keep: null"),
               "max_leftover_rows =");
  EXPECT_LACKS(chat_recipe(local + "packing_ratio: 1.0, max_leftover_bins_to_keep: 8"),
               "max_leftover_rows =");
  EXPECT_CONTAINS(chat_recipe(local + "max_leftover_bins_to_keep: 8"), "needs packing_ratio");
}

TEST(FoundryChat, RowsAreFilledUpOnTheSideOfTheTokenizer) {
  const auto with_side = [](const std::string& side) {
    return chat_recipe("local: x, split: train",
                       "tokenizer: {name: gpt2, kwargs: {padding_side: " + side + "}}\n");
  };
  EXPECT_CONTAINS(with_side("left"), "padding_side = \"left\"");
  EXPECT_LACKS(with_side("right"), "padding_side = \"");
  EXPECT_CONTAINS(with_side("top"), "expected left or right");
}

TEST(FoundryChat, TheTokenizersTemplateWritesConversations) {
  const TempDir dir;
  const auto recipe = [&](const std::string& name) {
    return chat_recipe("local: x, split: train", "tokenizer: {name: " + name + "}\n");
  };
  const auto config = [&](const char* text) { std::ofstream(dir / "tokenizer_config.json") << text; };
  config(R"({"chat_template": "{{ messages }}"})");
  EXPECT_CONTAINS(recipe(dir.path()), "template = \"tokenizer\"");
  EXPECT_CONTAINS(recipe(dir / "tokenizer.json"), "template = \"tokenizer\"");
  config(R"({"chat_template": null})");
  EXPECT_LACKS(recipe(dir.path()), "template =");
  std::ofstream(dir / "chat_template.jinja") << "{{ messages }}";
  EXPECT_CONTAINS(recipe(dir.path()), "template = \"tokenizer\"");
  EXPECT_LACKS(recipe("gpt2"), "template =");
  const Imported made =
      import_recipe("x.yaml", "max_duration: 1ba\ntrain_loader: {name: finetuning, dataset: {local: x}}\n");
  ASSERT_FALSE(made.notes.empty());
  EXPECT_CONTAINS(made.notes[0], "LLM Foundry takes the tokenizer's chat_template where it has one");
}

TEST(FoundryChat, TheOrderOfRowsIsLlmFoundrys) {
  const std::string mds = "remote: /d, local: /c, split: train, ";
  EXPECT_CONTAINS(chat_recipe(mds + "shuffle: true"), "shuffle_seed = 9176,");
  EXPECT_CONTAINS(chat_recipe(mds + "shuffle: true"), "compat = \"composer\"");
  EXPECT_CONTAINS(chat_recipe(mds + "shuffle: true, shuffle_seed: 5"), "shuffle_seed = 5,");
  EXPECT_LACKS(chat_recipe(mds + "shuffle: true, shuffle_seed: 5"), "9176");
  EXPECT_CONTAINS(chat_recipe(mds + "max_leftover_bins_to_keep: null"), "shuffle = false,");
  const std::string rows = "hf_name: ./d, split: train, ";
  EXPECT_CONTAINS(chat_recipe(rows + "shuffle: true"), "shuffle_seed = 0,");
  EXPECT_CONTAINS(chat_recipe(rows + "shuffle: true"), "compat = \"composer\"");
  EXPECT_CONTAINS(chat_recipe(rows + "shuffle: true, shuffle_seed: 5"), "shuffle_seed = 5,");
}

TEST(FoundryChat, KeysWithoutEffectInLlmFoundryHaveNoneHere) {
  const std::string recipe =
      chat_recipe("local: x, split: train, eos_token_id: 0", "global_seed: 17\nicl_max_seq_len: 1024\n");
  EXPECT_CONTAINS(recipe, "examples end with the tokenizer's eos token");
  EXPECT_CONTAINS(recipe, "what refers to it has its value");
  EXPECT_CONTAINS(chat_recipe("local: x, split: train", "global_seed: 17\nseed: ${global_seed}\n"), "17");
}

}  // namespace
}  // namespace tycho
