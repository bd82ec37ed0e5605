// Processes that share a model: plans, runs, kills, and looks at whole tensors from a prompt.
#include "tests/ranks/ranks_fixture.h"

namespace tycho {
namespace {

class ShardedRanksTest : public RanksTest {
 protected:
  Outcome script(const std::string& text) const {
    write(text, "script");
    return here("unset -f tycho; timeout 120 " TYCHO_PROGRAM
                " launch -n 2 repl x.lua parallel.dp_shard=2 run_dir=prompt < script");
  }
};

TEST_F(ShardedRanksTest, TrainWhatOneRankDoesAndResumeOnAnyNumber) {
  ASSERT_EQ(run(1, "one").code, 0);
  const Outcome whole = run(2, "two", "parallel.dp_shard=2");
  ASSERT_EQ(whole.code, 0) << whole.output;
  expect_close(numbers("one", "loss"), numbers("two", "loss"));
  EXPECT_EQ(events("two", "checkpoint").size(), 3U);
  ASSERT_EQ(run(2, "parts", "parallel.dp_shard=2 --until 10ba").code, 0);
  const Outcome four = run(4, "parts", "parallel.dp_replicate=2 parallel.dp_shard=-1 --until 17ba");
  ASSERT_EQ(four.code, 0) << four.output;
  EXPECT_CONTAINS(four.output, "resumed from step 10");
  ASSERT_EQ(run(1, "parts").code, 0);
  expect_close(numbers("one", "loss"), numbers("parts", "loss"));
  EXPECT_EQ(here("tycho ckpt verify parts").code, 0);
}

TEST_F(ShardedRanksTest, FullStateIsOneFileWithTheSameCheckpoint) {
  ASSERT_EQ(run(2, "many", "parallel.dp_shard=2 --until 10ba").code, 0);
  const Outcome full = run(2, "full", "parallel.dp_shard=2 ckpt.state=full --until 10ba");
  ASSERT_EQ(full.code, 0) << full.output;
  EXPECT_EQ(here("cd full/checkpoints && ls step-*/*.safetensors | xargs -n 1 basename | sort -u").output,
            "rank-00000.safetensors\n");
  EXPECT_EQ(here("tycho ckpt verify full").code, 0);
  const Outcome difference = here("tycho ckpt diff many full");
  EXPECT_EQ(difference.code, 1);  // of the recipes
  EXPECT_CONTAINS(difference.output, " tensors are equal, 0 differ");
  EXPECT_CONTAINS(difference.output, "recipe.ckpt.state");
  ASSERT_EQ(run(2, "many", "parallel.dp_shard=2").code, 0);
  const Outcome resumed = run(2, "full", "parallel.dp_shard=2 ckpt.state=full");
  ASSERT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_CONTAINS(resumed.output, "resumed from step 10");
  EXPECT_CONTAINS(here("tycho ckpt diff many full").output, " tensors are equal, 0 differ");
}

TEST_F(ShardedRanksTest, AMeshThatDoesNotFitIsRefusedWithTheNearest) {
  for (const Outcome& refused :
       {run(2, "run", "parallel.dp_shard=3"), here("tycho plan x.lua --ranks 2 parallel.dp_shard=3")}) {
    EXPECT_EQ(refused.code, 11);
    EXPECT_CONTAINS(refused.output, "parallel.dp_shard");
    EXPECT_CONTAINS(refused.output, ": the number of ranks must be a multiple of 3");
    EXPECT_CONTAINS(refused.output, "dp_replicate = 1 with dp_shard = 2");
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  const Outcome planned = here("tycho plan x.lua parallel.dp_shard=4 global_batch=8sp");
  EXPECT_EQ(planned.code, 0) << planned.output;
  EXPECT_CONTAINS(planned.output, "dp_shard 4");
  EXPECT_CONTAINS(planned.output, "received from other ranks per step");
}

TEST_F(ShardedRanksTest, ShareMatricesAndResumeOnAnyMesh) {
  ASSERT_EQ(run(1, "one").code, 0);
  const Outcome whole = run(2, "two", "parallel.tp=2");
  ASSERT_EQ(whole.code, 0) << whole.output;
  expect_close(numbers("one", "loss"), numbers("two", "loss"));
  ASSERT_EQ(run(4, "parts", "parallel.tp=2 parallel.dp_shard=2 --until 10ba").code, 0);
  const Outcome four = run(4, "parts", "parallel.tp=4 parallel.sequence_parallel=false --until 17ba");
  ASSERT_EQ(four.code, 0) << four.output;
  EXPECT_CONTAINS(four.output, "resumed from step 10");
  ASSERT_EQ(run(2, "parts", "parallel.dp_shard=2").code, 0);
  expect_close(numbers("one", "loss"), numbers("parts", "loss"));
  EXPECT_EQ(here("tycho ckpt verify parts").code, 0);
}

TEST_F(ShardedRanksTest, ShareSequencesAndResumeOnAnyMesh) {
  ASSERT_EQ(run(1, "one").code, 0);
  ASSERT_EQ(run(2, "parts", "parallel.cp=2 --until 10ba").code, 0);
  const Outcome four = run(4, "parts", "parallel.cp=2 parallel.tp=2 --until 17ba");
  ASSERT_EQ(four.code, 0) << four.output;
  EXPECT_CONTAINS(four.output, "resumed from step 10");
  ASSERT_EQ(run(2, "parts", "parallel.dp_shard=2").code, 0);
  expect_close(numbers("one", "loss"), numbers("parts", "loss"));
  EXPECT_EQ(here("tycho ckpt verify parts").code, 0);
  const Outcome ring = run(4, "ring", "parallel.cp=4 parallel.cp_attention=ring");
  ASSERT_EQ(ring.code, 0) << ring.output;
  expect_close(numbers("one", "loss"), numbers("ring", "loss"));
  const Outcome refused = here("tycho plan x.lua parallel.cp=5");
  EXPECT_EQ(refused.code, 10) << refused.output;
  EXPECT_CONTAINS(refused.output, "cannot be shared evenly by parallel.cp = 5: expected a multiple of 10");
}

TEST_F(ShardedRanksTest, HeadsThatDoNotDivideAreRefusedBeforeAnythingStarts) {
  for (const Outcome& refused : {run(3, "run", "parallel.tp=3"), here("tycho plan x.lua parallel.tp=3"),
                                 here("tycho check x.lua parallel.tp=3")}) {
    EXPECT_EQ(refused.code, 11) << refused.output;
    EXPECT_CONTAINS(refused.output, "3 ranks cannot evenly share 4 heads with 2 for keys and values");
    EXPECT_CONTAINS(refused.output, "can be shared by 1, 2, 4");
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  const Outcome planned = here("tycho plan x.lua --ranks 8 parallel.tp=4");
  EXPECT_EQ(planned.code, 0) << planned.output;
  EXPECT_CONTAINS(planned.output, "dp_replicate 2 x tp 4");
  EXPECT_CONTAINS(planned.output, "activations, and gradients of them");
}

TEST_F(ShardedRanksTest, ARankOfARingThatIsKilledIsNamed) {
  const std::string arguments =
      "x.lua run_dir=run max_duration=4000ba parallel.cp=2 parallel.cp_attention=ring";
  const Outcome ended = here(by_hand(arguments, arguments, until_it_trains("run") + "kill -9 $rank_1"));
  EXPECT_CONTAINS(ended.output, "codes 143 137");
  EXPECT_CONTAINS(text("rank_0.log"), "rank 1 (");
  EXPECT_CONTAINS(text("rank_0.log"), "has died");
}

TEST_F(ShardedRanksTest, ARankOfSharedMatricesThatIsKilledIsNamed) {
  const std::string arguments = "x.lua run_dir=run max_duration=4000ba parallel.tp=2";
  const Outcome ended = here(by_hand(arguments, arguments, until_it_trains("run") + "kill -9 $rank_1"));
  EXPECT_CONTAINS(ended.output, "codes 143 137");
  EXPECT_CONTAINS(text("rank_0.log"), "rank 1 (");
  EXPECT_CONTAINS(text("rank_0.log"), "has died");
}

TEST_F(ShardedRanksTest, KilledAnywhereTheyLoseNothingThatWasCommitted) {
  write(recipe("r.max_duration, r.ckpt.every, r.ckpt.keep = \"24ba\", \"1ba\", 2\n"));
  ASSERT_EQ(run(2, "undisturbed", "parallel.dp_shard=2").code, 0);
  const std::string lines = "$(cat run/metrics.jsonl 2>/dev/null | wc -l)";
  for (int attempt = 0; attempt < 4; ++attempt) {
    // With --force: on a slow machine three kills in a row may come before anything newer is saved.
    const std::string arguments = "x.lua run_dir=run --force parallel.dp_shard=2";
    // Not while ranks join, where the other would wait for long.
    const std::string until_it_goes_on = "n=" + lines + "; for i in $(seq 6000); do test " + lines +
                                         " -gt $n && break; sleep 0.02; done; sleep 0.0" +
                                         std::to_string(2 * attempt) + "; ";
    here(by_hand(arguments, arguments, until_it_goes_on + "kill -9 $rank_" + std::to_string(attempt % 2)));
    if (fs::exists(folder_ / "run/checkpoints/latest")) {
      const Outcome verified = here("tycho ckpt verify run");
      EXPECT_EQ(verified.code, 0) << verified.output;
    }
  }
  const Outcome last = run(2, "run", "--force parallel.dp_shard=2");
  ASSERT_EQ(last.code, 0) << last.output;
  EXPECT_EQ(final_weights("undisturbed"), final_weights("run"));
}

TEST_F(ShardedRanksTest, APromptSeesWholeTensorsOnAllRanks) {
  const Outcome got = script(
      "build(r);\ntrainer:step(2);\n"
      "#model.params\nmodel:find('model.embed_tokens.weight').shape[1]\n"
      "model:find('model.embed_tokens.weight'):norm() > 0\n"
      "model:find('model.norm.weight').grad:norm() > 0\n#model:generate({ 1, 2, 3 }, { max_tokens = 3 })\n");
  EXPECT_EQ(got.code, 0) << got.output;
  EXPECT_CONTAINS(got.output, "300\ntrue\ntrue\n");
  EXPECT_EQ(got.output.find("rank 1"), std::string::npos) << got.output;
  EXPECT_CONTAINS(script("build(r);\n@1 model:find('model.norm.weight')\n").output, "needs all ranks");
}

TEST_F(ShardedRanksTest, ReadyMadeCallbacksReadSharedParameters) {
  write(recipe(
      "r.max_duration = \"4ba\"\nr.callbacks.norms = t.cb.grad_norm { per = \"layer\", every = \"1ba\" }\n"
      "r.callbacks.monitor = t.cb.optimizer_monitor { per = \"param\", every = \"1ba\" }\n"
      "r.callbacks.talk = t.cb.generate { prompts = { \"the\" }, max_tokens = 3, every = \"2ba\" }\n"));
  for (const char* mesh : {"1", "2"}) {
    const Outcome outcome = run(2, std::string("of") + mesh, std::string("parallel.dp_shard=") + mesh);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
  const std::string layer = "grad_norm/layer0";
  expect_close(numbers("of1", layer), numbers("of2", layer), 1e-4);
  EXPECT_EQ(numbers("of1", layer).size(), 4U);
  for (const char* kind : {"l2_norm/moment/", "l2_norm/update/", "cosine/moment_grad/"}) {
    const std::string name = std::string(kind) + "model.layers.0.mlp.down_proj.weight";
    expect_close(numbers("of1", name), numbers("of2", name), 1e-3);
    EXPECT_EQ(numbers("of1", name).size(), 4U) << name;
  }
}

}  // namespace
}  // namespace tycho
