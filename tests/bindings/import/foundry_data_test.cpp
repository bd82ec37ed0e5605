// LLM Foundry's text loader: where its data is, and in which order it is read.
#include <gtest/gtest.h>

#include "tests/bindings/import/foundry_yaml.h"

namespace tycho {
namespace {

TEST(FoundryData, TellsThatTheLastSamplesOfAnEpochAreLeftOut) {
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

TEST(FoundryData, MapsWhereDataLies) {
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
  EXPECT_CONTAINS(finetuning("hf_name: ./d, split: train, target_prompts: length>=x"),
                  "expected none, all or");
  const std::string mds = finetuning("local: /cache, remote: 's3://b/sft', split: train");
  EXPECT_CONTAINS(mds, "path = \"/cache/train\"");
  EXPECT_CONTAINS(mds, "remote = \"s3://b/sft/train\"");
  const auto text = [](const std::string& dataset) {
    return imported("max_duration: 1ba\ntrain_loader: {name: text, dataset: {" + dataset + "}}\n");
  };
  EXPECT_CONTAINS(text("streams: {c4: {local: /data/c4, split: train, proportion: 1.0}}, epoch_size: 10k"),
                  "local_dir = \"/data/c4\",\n  split = \"train\",\n");
  EXPECT_CONTAINS(text("local: x, epoch_size: 10k"), "epoch_size = 10000,");
  EXPECT_CONTAINS(text("local: x, epoch_size: 123"), "epoch_size = 123,");
  EXPECT_CONTAINS(text("local: x, epoch_size: lots"), "expected a number of samples");
}

TEST(FoundryData, MapsTheOrderOfSamples) {
  const auto text = [](const std::string& dataset) {
    return imported("max_duration: 1ba\ntrain_loader: {name: text, dataset: {" + dataset + "}}\n");
  };
  const std::string usual = text("local: x, shuffle: true");
  EXPECT_CONTAINS(
      usual,
      "shuffle_algo = \"py1e\",\n  shuffle_seed = 9176,\n  compat = \"streaming\",\n  truncate = true,\n}");
  EXPECT_CONTAINS(
      text("local: x"),
      "shuffle = false,\n  shuffle_seed = 9176,\n  compat = \"streaming\",\n  truncate = true,\n}");
  EXPECT_CONTAINS(text("local: x, shuffle: false, shuffle_algo: py1s"),
                  "-- shuffle_algo: py1s  (samples are not shuffled)");
  EXPECT_CONTAINS(text("local: x, shuffle: true, shuffle_algo: py1b"), "has no py1b any more: write py1br");
  const std::string all = text(
      "local: x, shuffle: true, shuffle_algo: py1br, shuffle_block_size: 9000, num_canonical_nodes: 4, "
      "shuffle_seed: 3, sampling_method: fixed, sampling_granularity: 8, partition_algo: relaxed");
  for (const char* line : {"shuffle_algo = \"py1br\"", "shuffle_block_size = 9000", "num_canonical_nodes = 4",
                           "sampling_method = \"fixed\"", "sampling_granularity = 8"})
    EXPECT_CONTAINS(all, line);
  EXPECT_CONTAINS(text("local: x, shuffle: true, shuffle_algo: py1s, shuffle_block_size: 9"),
                  "py1s has no blocks");
  EXPECT_CONTAINS(text("local: x, batching_method: stratified"),
                  "-- batching_method: stratified  (there is one");
  EXPECT_CONTAINS(text("local: x, replication: 2"), "get the same samples. Set one of these");
}

/// LLM Foundry reads bytes as what token_encoding_type says, Tycho as int64.
TEST(FoundryData, RefusesBytesOfOtherNumbers) {
  const auto loader = [](const std::string& name, const std::string& type) {
    return imported("max_duration: 1ba\ntrain_loader: {name: " + name +
                    ", dataset: {local: x, split: train, token_encoding_type: " + type + "}}\n");
  };
  for (const char* name : {"text", "finetuning"}) {
    for (const char* type : {"int32", "uint16", "int8"})
      EXPECT_CONTAINS(loader(name, type), std::string("expected int64, got ") + type +
                                              ": a column of \"bytes\" is read as int64. Write the data with "
                                              "columns of ndarray:int32");
    EXPECT_CONTAINS(loader(name, "int64"), "-- token_encoding_type: int64  (bytes are read as int64)");
  }
  EXPECT_CONTAINS(
      imported("max_duration: 1ba\ntrain_loader: {name: finetuning, dataset: {hf_name: ./d, split: "
               "train, token_encoding_type: int32}}\n"),
      "-- token_encoding_type: int32  (rows are texts)");
}

TEST(FoundryData, MapsWhatFetchesData) {
  const auto text = [](const std::string& dataset) {
    return imported("max_duration: 1ba\ntrain_loader: {name: text, dataset: {" + dataset + "}}\n");
  };
  const std::string keys =
      "cache_limit: 10gb, predownload: 500, download_retry: 2, download_timeout: 60, keep_zip: true, local: "
      "/c";
  const std::string fetched = text("remote: 's3://b/c', " + keys);
  for (const char* line :
       {"cache_limit = \"10GiB\"", "predownload = 500", "download_retry = 2", "download_timeout_s = 60",
        "keep_zip = true", "remote = \"s3://b/c\"", "local_dir = \"/c\""})
    EXPECT_CONTAINS(fetched, line);
  EXPECT_CONTAINS(text("remote: /data, " + keys), "-- cache_limit: 10gb  (data is read in place)");
  EXPECT_CONTAINS(text("remote: 'https://h/c', local: /c, cache_limit: 4096"), "cache_limit = \"4096B\"");
  EXPECT_CONTAINS(text("remote: 'https://h/c', local: /c, cache_limit: big"),
                  "expected a size such as 100gb");
}

TEST(FoundryData, MapsStreams) {
  const auto text = [](const std::string& dataset) {
    return imported("max_duration: 1ba\ntrain_loader: {name: text, dataset: {" + dataset + "}}\n");
  };
  EXPECT_CONTAINS(text("split: train, batching_method: per_stream, streams: {a: {local: x, proportion: 0.3}, "
                       "b: {remote: y, local: z, split: v, proportion: 0.7}}"),
                  "streams = { { name = \"a\", local_dir = \"x\", split = \"train\", proportion = 0.3 }, "
                  "{ name = \"b\", local_dir = \"y\", split = \"v\", proportion = 0.7 } },");
  EXPECT_CONTAINS(text("streams: [{local: x, choose: 5}, {local: y, repeat: 2}]"),
                  "streams = { { name = \"0\", local_dir = \"x\", split = \"\", choose = 5 }, "
                  "{ name = \"1\", local_dir = \"y\", split = \"\", [\"repeat\"] = 2 } },");
  EXPECT_CONTAINS(text("streams: {a: {local: x, repeat: 2}}"), "split = \"\", [\"repeat\"] = 2 } },");
  EXPECT_CONTAINS(text("streams: {a: {remote: 's3://b/c', local: x}, b: {local: y}}"),
                  "{ name = \"a\", remote = \"s3://b/c\", local_dir = \"x\", split = \"\" }");
  EXPECT_CONTAINS(text("streams: {a: {local: x}, b: {split: y}}"), "expected the folder of the data");
  EXPECT_CONTAINS(text("streams: {a: {local: x, proportoin: 1}, b: {local: y}}"), "unknown key");
}

}  // namespace
}  // namespace tycho
