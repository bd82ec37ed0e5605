// tycho data preload as people start it.
#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

class DataPreloadTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    write("A text of some length, so that there are a few samples of tokens in it.\n", "a.txt");
    const Outcome made = here(
        "tycho tokenizer train a.txt --vocab-size 260 --out tok.json && for split in train val; do tycho "
        "data convert "
        "a.txt --tokenizer tok.json --no-separator --concat-tokens 8 --split $split --out far; done");
    ASSERT_EQ(made.code, 0) << made.output;
  }
  bool has(const std::string& file) const { return std::filesystem::exists(folder_ / file); }
};

TEST_F(DataPreloadTest, CopiesSplitsAndReportsWhatWasVerified) {
  const Outcome outcome = here("tycho data preload far near --split train,val --json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const Json list = parse_json(outcome.output, "preload");
  ASSERT_EQ(list.size(), 2u);
  for (const Json& split : list) {
    EXPECT_EQ(split.at("fetched_shards"), 1);
    EXPECT_EQ(split.at("with_checksum"), 1);
  }
  EXPECT_TRUE(has("near/train/shard.00000.mds") && has("near/val/index.json"));
  EXPECT_CONTAINS(here("tycho data preload far/train near2 --split ''").output, "sizes and checksums");
  EXPECT_TRUE(has("near2/shard.00000.mds"));
}

TEST_F(DataPreloadTest, FillsTheCachesOfARecipe) {
  write(
      whole("r.train_data = t.data.mds { remote = 'far', local_dir = 'c1' }\n"
            "r.eval_data.val = t.data.mds { remote = 'far', local_dir = 'c1', split = 'val' }\n"));
  EXPECT_EQ(here("tycho data preload x.lua train_data.local_dir=c2").code, 0);
  EXPECT_TRUE(has("c2/train/shard.00000.mds") && has("c1/val/shard.00000.mds") && !has("c1/train"));
  const Outcome limited = here("tycho data preload x.lua train_data.cache_limit=1GB");
  EXPECT_EQ(limited.code, 2);
  EXPECT_CONTAINS(limited.output, "cache_limit would remove it again");
  write(whole(), "y.lua");
  EXPECT_CONTAINS(here("tycho data preload y.lua").output, "no data with a remote");
}

TEST_F(DataPreloadTest, FillsTheCachesOfConversationsAndTexts) {
  write("{\"prompt\": \"a\", \"response\": \" b\"}\n", "far/sft.jsonl");
  write("{\"text\": \"one\"}\n", "far/0.jsonl");
  write("{\"text\": \"two\"}\n", "far/1.jsonl");
  ASSERT_EQ(here("tycho data convert far/sft.jsonl --chat --out far/talks").code, 0);
  write(
      whole("r.tokenizer = 'tok.json'\n"
            "r.train_data = t.data.chat { remote = 'far/sft.jsonl', path = 'near/sft.jsonl' }\n"
            "r.eval_data.talks = t.data.chat { remote = 'far/talks/train', path = 'near/talks' }\n"
            "r.eval_data.texts = t.data.text { remote = 'far', remote_files = { '0.jsonl', '1.jsonl' }, "
            "path = 'near/texts' }\n"));
  for (const int64_t wanted : {1, 0}) {
    const Outcome outcome = here("tycho data preload x.lua --json");
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    const Json list = parse_json(outcome.output, "preload");
    ASSERT_EQ(list.size(), 3u);
    for (const Json& one : list) {
      EXPECT_GT(one.at("seconds"), 0);
      const bool is_texts = one.at("dir") == "near/texts";
      EXPECT_EQ(one.at("shards"), is_texts ? 2 : 1) << one;
      EXPECT_EQ(one.at("fetched_shards"), wanted * one.at("shards").get<int64_t>()) << one;
    }
  }
  EXPECT_TRUE(has("near/sft.jsonl") && has("near/talks/shard.00000.mds") && has("near/texts/1.jsonl"));
  std::filesystem::remove(folder_ / "far/1.jsonl");
  std::filesystem::remove(folder_ / "near/texts/1.jsonl");
  const Outcome absent = here("tycho data preload x.lua");
  EXPECT_EQ(absent.code, 12);
  EXPECT_CONTAINS(absent.output, "far/1.jsonl does not exist");
}

TEST_F(DataPreloadTest, OneTaskOfANodeCopies) {
  EXPECT_EQ(here("SLURM_LOCALID=1 tycho data preload far near").code, 0);
  EXPECT_FALSE(has("near"));
  EXPECT_EQ(here("SLURM_LOCALID=0 tycho data preload far near").code, 0);
  EXPECT_TRUE(has("near/train/index.json"));
}

TEST_F(DataPreloadTest, SaysWhatIsMissingAndLeavesNothing) {
  const Outcome absent = here("tycho data preload far near --split nope");
  EXPECT_EQ(absent.code, 12);
  EXPECT_CONTAINS(absent.output, "far/nope/index.json does not exist");
  EXPECT_FALSE(has("near"));
  EXPECT_EQ(here("tycho data preload gs://b/x near").code, 12);
  EXPECT_EQ(here("tycho data preload far near more").code, 2);
  EXPECT_EQ(here("tycho data preload").code, 2);
}

}  // namespace
}  // namespace tycho
