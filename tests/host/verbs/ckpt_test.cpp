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

}  // namespace
}  // namespace tycho
