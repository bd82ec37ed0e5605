// What the verbs of checkpoints say of whole and of damaged ones.
#include "tests/host/shell.h"

namespace tycho {
namespace {

class CkptTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    ASSERT_EQ(here("tycho convert " TYCHO_SOURCE_DIR "/tests/golden/hf/llama runs/a").code, 0);
    // A second checkpoint beside it, by its folder's name an older one.
    ASSERT_EQ(here("cp -r runs/a/checkpoints/step-* runs/a/checkpoints/step-000000000.ffffffff").code, 0);
  }
  void damage(const std::string& checkpoint) const {
    ASSERT_EQ(
        here("printf x | dd of=" + checkpoint + "/rank-00000.safetensors bs=1 seek=20000 conv=notrunc").code,
        0);
  }
  void cut(const std::string& checkpoint) const {
    ASSERT_EQ(here("truncate -s 100 " + checkpoint + "/rank-00000.safetensors").code, 0);
  }
};

constexpr const char* kSecond = "runs/a/checkpoints/step-000000000.ffffffff";

TEST_F(CkptTest, VerifiesEveryCheckpointOfARun) {
  const Outcome whole = here("tycho ckpt verify runs/a | grep -c 'every byte as written'");
  EXPECT_EQ(whole.output, "2\n");
  damage(kSecond);
  const Outcome one = here("tycho ckpt verify runs/a");
  EXPECT_EQ(one.code, 12);
  EXPECT_CONTAINS(one.output, "every byte as written");
  EXPECT_CONTAINS(one.output, "[ckpt] 1 of 2 checkpoints is damaged:");
  EXPECT_CONTAINS(one.output, "step-000000000.ffffffff/rank-00000.safetensors");
  cut(kSecond);
  EXPECT_EQ(here("tycho ckpt verify runs/a/checkpoints").code, 12);
  EXPECT_EQ(here(std::string("tycho ckpt verify ") + kSecond).code, 12);
  EXPECT_EQ(here("tycho ckpt verify nowhere").code, 12);
}

TEST_F(CkptTest, ListsTags) {
  EXPECT_EQ(here("tycho ckpt ls runs/a").output.find("tag"), std::string::npos) << "none has one";
  write(
      "local t = require 'tycho'\nlocal r = t.recipe 'b'\n"
      "r.model = t.model.llama { width = 16, layers = 1, heads = 2, ffn_width = 16, vocab_size = 384 }\n"
      "r.seq_len, r.global_batch, r.max_duration, r.threads = 32, '2sp', '2ba', 1\n"
      "r.optimizer, r.scheduler = t.optim.adamw { lr = 1e-3 }, t.sched.constant {}\n"
      "r.tokenizer, r.train_data = 'data/tokenizer.json', t.data.mds { local_dir = 'data' }\n"
      "r.callbacks.tag = t.control { batch_end = function(ctx) if ctx.step == 1 then ctx.cmd.save('best') "
      "end end }\n"
      "return r\n",
      "b.lua");
  ASSERT_EQ(here("PATH=$(dirname " TYCHO_PROGRAM "):$PATH " TYCHO_SOURCE_DIR "/tests/make_tiny_data 32").code,
            0);
  const Outcome trained = here("tycho run b.lua");
  ASSERT_EQ(trained.code, 0) << trained.output;
  const Outcome tagged = here("tycho ckpt ls runs/b");
  EXPECT_CONTAINS(tagged.output, "tag");
  EXPECT_CONTAINS(tagged.output, "best");
  EXPECT_CONTAINS(here("tycho ckpt ls runs/b --json").output, "\"tag\": \"best\"");
  EXPECT_CONTAINS(here("tycho ls").output, "2/2");
}

TEST_F(CkptTest, SaysWhatIsInTheRunsStoreAndGetsIt) {
  ASSERT_EQ(here("PATH=$(dirname " TYCHO_PROGRAM "):$PATH " TYCHO_SOURCE_DIR "/tests/make_tiny_data 32").code,
            0);
  write(
      "local t = require 'tycho'\nlocal r = t.recipe 'far'\n"
      "r.model = t.model.llama { width = 16, layers = 1, heads = 2, ffn_width = 16, vocab_size = 384 }\n"
      "r.seq_len, r.global_batch, r.max_duration, r.threads = 32, '2sp', '2ba', 1\n"
      "r.optimizer, r.scheduler = t.optim.adamw { lr = 1e-3 }, t.sched.constant {}\n"
      "r.tokenizer, r.train_data = 'data/tokenizer.json', t.data.mds { local_dir = 'data' }\n"
      "r.ckpt.every = '1ba'\nreturn r\n",
      "far.lua");
  const Outcome trained = here("tycho run far.lua \"ckpt.remote=file://$PWD/store/{run_name}\"");
  ASSERT_EQ(trained.code, 0) << trained.output;
  const Outcome both = here("tycho ckpt ls runs/far");
  EXPECT_CONTAINS(both.output, "remote  path");
  EXPECT_EQ(here("tycho ckpt ls runs/far | grep -c ' yes '").output, "2\n") << both.output;
  EXPECT_EQ(here("tycho ckpt ls runs/far --json | grep -c '\"is_in_remote\": true'").output, "2\n");
  EXPECT_EQ(here("rm -r store/far/checkpoints/step-000000001* runs/far/checkpoints/step-000000002*").code, 0);
  const Outcome apart = here("tycho ckpt ls runs/far");
  EXPECT_EQ(here("tycho ckpt ls runs/far | grep -c ' no .*runs/far/checkpoints/step-000000001'").output,
            "1\n")
      << apart.output;
  EXPECT_EQ(here("tycho ckpt ls runs/far | grep -c ' only .*store/far/checkpoints/step-000000002'").output,
            "1\n")
      << apart.output;
  const Outcome copy = here("tycho ckpt get file://$PWD/store/far here");
  EXPECT_EQ(copy.code, 0) << copy.output;
  EXPECT_CONTAINS(copy.output, "every byte as written, step 2");
  EXPECT_EQ(here("tycho ckpt diff here store/far").code, 0);
  EXPECT_CONTAINS(here("tycho ckpt get file://$PWD/store/far here").output, "of it was here");
  EXPECT_EQ(here("tycho ckpt get runs/far here").code, 2);
  EXPECT_EQ(here("tycho ckpt get file://$PWD/none here").code, 12);
}

TEST_F(CkptTest, ListsWhatIsBroken) {
  cut(kSecond);
  const Outcome one = here("tycho ckpt ls runs/a");
  EXPECT_EQ(one.code, 0) << one.output;
  EXPECT_CONTAINS(one.output, "broken: step-000000000.ffffffff");
  EXPECT_EQ(
      here("for c in runs/a/checkpoints/step-*; do truncate -s 100 $c/rank-00000.safetensors; done").code, 0);
  const Outcome none = here("tycho ckpt ls runs/a");
  EXPECT_EQ(none.code, 12);
  EXPECT_CONTAINS(none.output, "no committed checkpoints");
  EXPECT_EQ(here("tycho ckpt ls runs/a --json").code, 12);
}

TEST_F(CkptTest, AReshardedCopyDoesNotDiffer) {
  const Outcome copy = here("tycho ckpt reshard runs/a --out copy --files 3");
  EXPECT_EQ(copy.code, 0) << copy.output;
  EXPECT_CONTAINS(copy.output, " in 3 files");
  EXPECT_EQ(here("ls copy/step-*/ | grep -c safetensors").output, "3\n");
  const Outcome same = here("tycho ckpt diff runs/a copy");
  EXPECT_EQ(same.code, 0) << same.output;
  EXPECT_CONTAINS(same.output, " tensors are equal, 0 differ");
  const Outcome again = here("tycho ckpt reshard runs/a --out copy");
  EXPECT_EQ(again.code, 13);
  EXPECT_CONTAINS(again.output, "[ckpt] copy is not an empty folder; name a new one for the copy");
  EXPECT_EQ(here("tycho ckpt reshard runs/a --out other --files 0").code, 2);
  EXPECT_EQ(here("tycho ckpt reshard runs/a").code, 2);
  EXPECT_EQ(here("tycho ckpt diff runs/a").code, 2);
}

TEST_F(CkptTest, DiffNamesWhatIsNotTheSame) {
  ASSERT_EQ(here("tycho convert " TYCHO_SOURCE_DIR "/tests/golden/hf/gpt2 runs/b").code, 0);
  const Outcome found = here("tycho ckpt diff runs/a runs/b");
  EXPECT_EQ(found.code, 1);
  EXPECT_CONTAINS(found.output, "0 tensors are equal");
  EXPECT_CONTAINS(found.output, "only in A: F32 [");
  EXPECT_CONTAINS(found.output, "only in B: F32 [");
  EXPECT_CONTAINS(found.output, "recipe.model.");
  const Outcome json = here("tycho ckpt diff runs/a runs/b --json");
  EXPECT_EQ(json.code, 1);
  EXPECT_CONTAINS(json.output, "\"max_difference\": null");
}

}  // namespace
}  // namespace tycho
