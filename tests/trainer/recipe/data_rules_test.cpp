// The rules of data: separators, streams, remotes, orders, tokenizers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/trainer/recipe/problems_after.h"
#include "trainer/recipe/train_config.h"

namespace tycho {
namespace {

TEST(CheckConfig, WantsOneTokenThatSeparatesDocumentsEverywhere) {
  const auto data = [](TrainConfig& c) -> MdsConfig& { return std::get<MdsConfig>(c.train_data.value); };
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).eos_token_id = 0; }), "");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).eos_token_id = data(c).bos_token_id = 1; }),
            "train_data.bos_token_id: cannot be combined with eos_token_id: documents either begin or end "
            "with a token; remove one of them");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).bos_token_id = 8192; }),
            "train_data.bos_token_id: 8192 is outside the model's vocabulary of 8192");
  EXPECT_EQ(problems_after([&](TrainConfig& c) {
              c.eval_data["val"] = c.train_data;
              data(c).eos_token_id = 3;
            }),
            "eval_data.val.eos_token_id: is nothing, but train_data's is 3: their losses would not be "
            "comparable; use the same");
}

TEST(CheckConfig, WantsRowsOfConversationsThatFitTheRun) {
  const auto with = [](const std::function<void(TrainConfig&, ChatConfig&)>& change) {
    return problems_after([&](TrainConfig& c) {
      c.tokenizer = "tokenizer.json";
      c.global_batch = Duration::parse("8sp");
      ChatConfig chat{.path = "sft.jsonl", .pack = true};
      change(c, chat);
      c.train_data.value = chat;
    });
  };
  const NumberOrAuto found{0, true};
  EXPECT_EQ(with([&](auto&, ChatConfig& chat) {
              chat.packing_ratio = found;
              chat.packing_groups = 4;
              chat.padding_side = PaddingSide::kLeft;
            }),
            "");
  EXPECT_EQ(with([&](auto&, ChatConfig& chat) {
              chat.packing_ratio = found;
              chat.packing_groups = 3;
            }),
            "train_data.packing_groups: 3 cannot divide a global batch of 8 sequences; write a divisor of 8");
  EXPECT_EQ(with([&](auto&, ChatConfig& chat) {
              chat.packing_ratio = found;
              chat.pack = false;
            }),
            "train_data.packing_ratio: has no effect without pack = true; remove it");
  EXPECT_EQ(with([&](auto&, ChatConfig& chat) { chat.packing_groups = 2; }),
            "train_data.packing_groups: has no effect without packing_ratio; remove it");
  EXPECT_EQ(
      with([&](TrainConfig& c, ChatConfig& chat) {
        chat.padding_side = PaddingSide::kLeft;
        c.model.value = Gpt2Config();
      }),
      "train_data.padding_side: \"left\" would move every example to other positions, which gpt2 learns "
      "from the start of a row; write \"right\"");
  EXPECT_EQ(with([&](TrainConfig& c, ChatConfig& chat) {
              ChatConfig eval = chat;
              eval.packing_ratio = found;
              c.eval_data["dev"].value = eval;
            }),
            "eval_data.dev.packing_ratio: packs batches of training, and an evaluation takes every example "
            "once; remove it: pack = true packs all examples");
}

TEST(CheckConfig, WantsTrimmedPaddingWhereThereIsSome) {
  const auto with = [](const std::function<void(TrainConfig&, ChatConfig&)>& change) {
    return problems_after([&](TrainConfig& c) {
      c.tokenizer = "tokenizer.json";
      ChatConfig chat{.path = "sft.jsonl", .trim_padding = true, .bucket_batches = 8};
      change(c, chat);
      c.train_data.value = chat;
    });
  };
  EXPECT_EQ(with([](auto&, ChatConfig&) {}), "");
  EXPECT_EQ(with([](auto&, ChatConfig& chat) { chat.pack = true; }),
            "train_data.trim_padding: packed rows are full; set pack = false, or remove trim_padding");
  EXPECT_EQ(with([](auto&, ChatConfig& chat) { chat.trim_padding = false; }),
            "train_data.bucket_batches: saves nothing while every row has seq_len tokens; set trim_padding = "
            "true, or remove it");
  EXPECT_EQ(with([](TrainConfig& c, ChatConfig& chat) { c.eval_data["dev"].value = chat; }),
            "eval_data.dev.bucket_batches: groups batches of training, and an evaluation takes its rows in "
            "their order; remove it");
  EXPECT_TRUE(
      with([](TrainConfig& c, ChatConfig&) {
        c.seq_len = 1536;
        c.parallel.cp = 3;
      })
          .starts_with("train_data.trim_padding: makes rows whole multiples of 64 tokens, which "
                       "parallel.tp = 1 and parallel.cp = 3 cannot share evenly (they need multiples of "
                       "6); remove it"));
}

TEST(CheckConfig, WantsStreamsWhoseWeightsGoTogether) {
  const auto with = [](std::vector<StreamConfig> streams, std::optional<int64_t> epoch_size = {}) {
    return problems_after([&](TrainConfig& c) {
      auto& data = std::get<MdsConfig>(c.train_data.value);
      data.local_dir.clear();
      data.streams = std::move(streams);
      data.epoch_size = epoch_size;
    });
  };
  const StreamConfig web{.name = "web", .local_dir = "w"}, code{.name = "code", .local_dir = "c"};
  const auto share = [](StreamConfig stream, double proportion) {
    stream.proportion = proportion;
    return stream;
  };
  const auto times = [](StreamConfig stream, double repeat) {
    stream.repeat = repeat;
    return stream;
  };
  EXPECT_EQ(with({web, code}), "");
  EXPECT_EQ(with({share(web, 0), share(code, 1)}, 500), "");
  EXPECT_EQ(with({times(web, 0.5), code}), "");
  EXPECT_EQ(with({web, web}), "train_data.streams[2].name: another stream is called \"web\" too");
  EXPECT_EQ(with({share(web, 1), code}),
            "train_data.streams[2].proportion: is missing, but other streams have one: give all streams a "
            "proportion, or none");
  EXPECT_EQ(
      with({share(web, 0), share(code, 0)}),
      "train_data.streams[1].proportion: the proportions of all streams are 0; write at least one above 0");
  EXPECT_EQ(with({times(share(web, 1), 2), share(code, 1)}),
            "train_data.streams[1]: has more than one of proportion, repeat and choose; keep one");
  EXPECT_EQ(
      with({times(web, 2), code}, 100),
      "train_data.epoch_size: cannot be combined with repeat and choose, which say how long an epoch is; "
      "write proportions");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { std::get<MdsConfig>(c.train_data.value).streams = {web}; }),
            "train_data.local_dir: cannot be combined with streams, which have their own");
  EXPECT_EQ(problems_after([](TrainConfig& c) { c.train_data.value = MdsConfig(); }),
            "train_data.local_dir: is required: set it to the folder of the data, or write streams");
}

TEST(CheckConfig, RefusesRemotesThatCannotBeReadAndKeysThatWouldDoNothing) {
  const auto data = [](TrainConfig& c) -> MdsConfig& { return std::get<MdsConfig>(c.train_data.value); };
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).remote = "s3://bucket/x"; }), "");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).remote = "s3:///x"; }),
            "train_data.remote: expected s3://BUCKET/PREFIX");
  EXPECT_EQ(problems_after([&](TrainConfig& c) {
              data(c).remote = "https://h/x";
              data(c).local_dir.clear();
            }),
            "train_data.local_dir: is required: set it to the folder of the data, or write streams");
  EXPECT_EQ(
      problems_after([&](TrainConfig& c) {
        data(c).local_dir.clear();
        data(c).streams = {{.name = "web", .local_dir = "w", .remote = "https://me:pw@h"}};
      }),
      "train_data.streams[1].remote: holds a user name or password, which every file of a run would show: "
      "leave it out");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).cache_limit = Bytes{1 << 30}; }),
            "train_data.cache_limit: has no effect without remote; remove it");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).keep_zip = true; }),
            "train_data.keep_zip: has no effect without remote; remove it");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).decompress_dir = "/tmp/x"; }), "");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).decompress_memory = Bytes{0}; }), "");
  EXPECT_EQ(problems_after([&](TrainConfig& c) {
              data(c).decompress_memory = Bytes{0};
              data(c).remote = "https://h/x";
            }),
            "train_data.decompress_memory: has no effect with remote: shards are decompressed to files in "
            "local_dir; remove it");
  EXPECT_EQ(problems_after([&](TrainConfig& c) {
              data(c).decompress_dir = "/tmp/x";
              data(c).remote = "https://h/x";
            }),
            "train_data.decompress_dir: has no effect with remote, where local_dir holds what is "
            "decompressed; remove it");
}

TEST(CheckConfig, RefusesAnOrderThatWouldNotBeUsed) {
  const auto data = [](TrainConfig& c) -> MdsConfig& { return std::get<MdsConfig>(c.train_data.value); };
  EXPECT_EQ(problems_after([&](TrainConfig& c) {
              data(c).shuffle = false;
              data(c).shuffle_algo = ShuffleAlgo::kPy1e;
            }),
            "train_data.shuffle_algo: has no effect with shuffle = false; remove it");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).shuffle_block_size = 100; }),
            "train_data.shuffle_block_size: has no effect unless shuffle_algo is py1br or py1e; remove it");
  EXPECT_EQ(problems_after([&](TrainConfig& c) {
              data(c).shuffle_algo = ShuffleAlgo::kPy1br;
              data(c).shuffle_block_size = 1;
            }),
            "train_data.shuffle_block_size: 1 leaves py1br nothing to shuffle; write at least 2");
  EXPECT_EQ(problems_after([&](TrainConfig& c) { data(c).batching_method = BatchingMethod::kStratified; }),
            "train_data.batching_method: has no effect without streams; remove it");
}

TEST(CheckConfig, WantsTheDtypeOfBareTokensAndOfNoOtherFiles) {
  const auto with = [](TokenFormat format, std::optional<TokenDtype> dtype) {
    return problems_after([&](TrainConfig& c) {
      c.train_data.value = TokenFilesConfig{.path = "train.bin", .format = format, .dtype = dtype};
    });
  };
  EXPECT_EQ(with(TokenFormat::kRaw, TokenDtype::kUint16), "");
  EXPECT_EQ(with(TokenFormat::kRaw, {}),
            "train_data.dtype: is missing: files of the format raw do not say it; write uint16 (nanoGPT's "
            "GPT-2 tokens, vocabularies of at most 65536) or uint32");
  EXPECT_EQ(with(TokenFormat::kAuto, TokenDtype::kUint32),
            "train_data.dtype: has no effect unless format = \"raw\": other files say it themselves; remove "
            "it");
}

TEST(CheckConfig, WantsFilesOfARemoteByName) {
  const auto with = [](const std::string& remote, const std::vector<std::string>& files,
                       const std::string& hash = "") {
    return problems_after([&](TrainConfig& c) {
      c.tokenizer = "tokenizer.json";
      c.train_data.value =
          TextConfig{.path = "texts", .remote = remote, .remote_files = files, .remote_hash = hash};
    });
  };
  EXPECT_EQ(with("https://h/c4", {"en/0.jsonl.gz", "en/1.jsonl.gz"}), "");
  EXPECT_EQ(with("", {"0.jsonl"}), "train_data.remote_files: has no effect without remote; remove it");
  EXPECT_EQ(with("https://h/c4", {"0.jsonl"}, "md5:00"),
            "train_data.remote_hash: is of one file, but remote_files names 1: write remote_hashes, with "
            "one for each");
  const auto with_hashes = [](const std::vector<std::string>& files, const std::vector<std::string>& hashes) {
    return problems_after([&](TrainConfig& c) {
      c.tokenizer = "tokenizer.json";
      c.train_data.value =
          TextConfig{.path = "texts", .remote = "s3://b/c4", .remote_files = files, .remote_hashes = hashes};
    });
  };
  EXPECT_EQ(with_hashes({"a", "b"}, {"md5:00", "sha256:ff"}), "");
  EXPECT_EQ(with_hashes({}, {"md5:00"}),
            "train_data.remote_hashes: has no effect without remote_files; remove it");
  EXPECT_EQ(
      with_hashes({"a", "b"}, {"md5:00"}),
      "train_data.remote_hashes: has 1, and remote_files names 2: write one for each, in the same order");
  for (const char* hash : {"", "md5:", ":00", "00", "md5:0X"})
    EXPECT_EQ(
        with_hashes({"a"}, {hash}),
        fmt::format("train_data.remote_hashes[1]: is \"{}\": write a name, a colon and hex digits, as in "
                    "\"sha256:9f86d0...\"",
                    hash));
  for (const char* name : {"", "en/", "/etc/passwd", "../x", "en/../../x", "*.jsonl"})
    EXPECT_EQ(with("https://h/c4", {"0.jsonl", name}),
              fmt::format("train_data.remote_files[2]: is \"{}\": write the path of one file below remote, "
                          "such as en/0.jsonl",
                          name));
  EXPECT_EQ(with("https://h/c4", {"a", "b", "a"}),
            "train_data.remote_files[3]: names \"a\" again: leave it out");
}

TEST(CheckConfig, WantsATokenizerForConversations) {
  const auto chat = [](ChatConfig data, const char* tokenizer) {
    return [data, tokenizer](TrainConfig& c) {
      c.train_data.value = data;
      c.tokenizer = tokenizer;
    };
  };
  EXPECT_EQ(problems_after(chat({.path = "x.jsonl"}, "tokenizer.json")), "");
  EXPECT_EQ(problems_after(chat({.path = "x.jsonl"}, "")),
            "tokenizer: is missing, but train_data is text: set tokenizer = \"PATH/tokenizer.json\"");
  EXPECT_EQ(problems_after(chat({.path = ""}, "t.json")),
            "train_data.path: is empty: write a .jsonl, .csv or .parquet, or a folder of them");
  EXPECT_EQ(problems_after(chat({.path = "x.jsonl", .chat_template = "templates/own.jinja"}, "t.json")), "");
  EXPECT_EQ(
      problems_after(chat({.path = "x.jsonl", .chat_template = "zephyr"}, "t.json")),
      "train_data.template: is \"zephyr\": write chatml, llama3, tokenizer, or a path that ends in .jinja");
  EXPECT_EQ(problems_after(chat(
                {.path = "x.jsonl", .chat_template = "tokenizer", .template_date = "2026-03-09"}, "t.json")),
            "");
  EXPECT_EQ(problems_after(chat(
                {.path = "x.jsonl", .chat_template = "tokenizer", .template_date = "2026-02-30"}, "t.json")),
            "train_data.template_date: is \"2026-02-30\": write a day as \"2026-03-09\"");
  EXPECT_EQ(problems_after(chat({.path = "x.jsonl", .eos_token_id = 8192}, "t.json")),
            "train_data.eos_token_id: 8192 is outside the model's vocabulary of 8192");
  EXPECT_EQ(problems_after([](TrainConfig& c) {
              std::get<MdsConfig>(c.train_data.value).eos_token_id = 0;
              c.tokenizer = "t.json";
              c.eval_data["dev"].value = ChatConfig{.path = "x.jsonl"};
            }),
            "");
}

}  // namespace
}  // namespace tycho
