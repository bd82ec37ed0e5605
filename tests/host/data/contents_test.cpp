// tycho data verify, stats, sample and merge on small data sets.
#include "tests/host/shell.h"

namespace tycho {
namespace {

const std::string kGolden = TYCHO_SOURCE_DIR "/tests/golden/";

class DataContentsTest : public ShellTest {
 protected:
  void convert(const std::string& options = "") {
    const Outcome made =
        here("tycho data convert " + kGolden + "tokenizer/corpus.txt --tokenizer " + kGolden +
             "tokenizer/whole.json --eos-text '<|endoftext|>' --concat-tokens 16 --out d " + options);
    ASSERT_EQ(made.code, 0) << made.output;
  }
};

TEST_F(DataContentsTest, VerifyReadsEverythingAndNamesWhatIsDamaged) {
  convert("--val-fraction 0");
  const Outcome good = here("tycho data verify d");
  EXPECT_EQ(good.code, 0) << good.output;
  EXPECT_CONTAINS(good.output, "d/train");
  EXPECT_CONTAINS(good.output, "1 of 1");
  const Outcome bad = here(
      "printf X | dd of=d/train/shard.00000.mds bs=1 seek=5000 conv=notrunc status=none; tycho data verify d "
      "--threads 2");
  EXPECT_EQ(bad.code, 12);
  EXPECT_CONTAINS(bad.output, "1 problem found in the data");
  EXPECT_CONTAINS(bad.output, "d/train/shard.00000.mds is damaged");
  EXPECT_CONTAINS(here("tycho data verify d --json").output, "\"damage\"");
  EXPECT_EQ(here("tycho data verify nowhere").code, 12);
  EXPECT_EQ(here("tycho data verify").code, 2);
}

TEST_F(DataContentsTest, VerifySaysWhichShardsACacheLacks) {
  convert();
  const Outcome verified =
      here("mkdir d/train/.tycho-cache; rm d/train/shard.00000.mds; tycho data verify d");
  EXPECT_EQ(verified.code, 0) << verified.output;
  EXPECT_CONTAINS(verified.output, "d/train: 1 of 1 shards are not in this cache, and were not checked");
  EXPECT_CONTAINS(here("tycho data verify d --json").output, "\"absent_shards\": 1");
  EXPECT_EQ(here("rmdir d/train/.tycho-cache; tycho data verify d").code, 12);
}

TEST_F(DataContentsTest, VerifyDecodesEveryColumn) {
  std::filesystem::copy(kGolden + "mds/text_and_id", folder_ / "texts");
  EXPECT_EQ(here("tycho data verify texts").code, 0);
  const Outcome bad =
      here("LC_ALL=C sed -i 's/ab/\\xff\\xfe/' texts/shard.00000.mds && tycho data verify texts");
  EXPECT_EQ(bad.code, 12) << bad.output;
  EXPECT_CONTAINS(bad.output, "column \"text\" of sample 0 of texts/shard.00000.mds");
}

TEST_F(DataContentsTest, StatsCountTokensBytesAndDocuments) {
  convert();
  const Outcome stats = here("tycho data stats d");
  EXPECT_EQ(stats.code, 0) << stats.output;
  EXPECT_CONTAINS(stats.output, "bytes per token");
  EXPECT_CONTAINS(stats.output, "tokens each: shortest 16, median 16");
  EXPECT_CONTAINS(stats.output, "documents: ");
  EXPECT_CONTAINS(here("tycho data stats d --json").output, "\"document_tokens\"");
  EXPECT_CONTAINS(here("rm d/tokenizer.json; tycho data stats d").output, "not counted");
  EXPECT_CONTAINS(here("tycho data stats d --bos-token 5").output, "documents: ");
  EXPECT_EQ(here("tycho data stats d --bos-token 5 --eos-token 5").code, 2);
}

TEST_F(DataContentsTest, SamplesAreShownAsTextOrAsTheirColumns) {
  convert();
  const Outcome text = here("tycho data sample d --from 1 --number 2");
  EXPECT_EQ(text.code, 0) << text.output;
  EXPECT_CONTAINS(text.output, "--- sample 1 of d/train/shard.00000.mds, 16 tokens");
  EXPECT_CONTAINS(text.output, "--- sample 2 of");
  const Outcome ids = here("tycho data sample " + kGolden + "mds/two_samples");
  EXPECT_CONTAINS(ids.output, "3 tokens\n1 2 3\n");
  const Outcome columns = here("tycho data sample " + kGolden + "mds/text_and_id");
  EXPECT_CONTAINS(columns.output, "id: 7\ntext: ab\n");
  EXPECT_CONTAINS(here("tycho data sample d --json").output, "\"text\"");
  const Outcome beyond = here("tycho data sample " + kGolden + "mds/two_samples --from 2");
  EXPECT_EQ(beyond.code, 2);
  EXPECT_CONTAINS(beyond.output, "--from is at most 1, got 2");
}

TEST_F(DataContentsTest, MergeWritesOneIndexOverFolders) {
  convert();
  const Outcome merged =
      here("mkdir -p all && cp -r d/train all/one && cp -r d/train all/two && tycho data merge all");
  EXPECT_EQ(merged.code, 0) << merged.output;
  EXPECT_CONTAINS(merged.output, "all/index.json names 2 shards");
  EXPECT_EQ(here("tycho data verify all").code, 0);
  EXPECT_EQ(here("tycho data merge all one").code, 2);
  EXPECT_EQ(here("tycho data merge nowhere").code, 2);
}

}  // namespace
}  // namespace tycho
