// Context parallel with device=cuda on the stand-in: flash attention of each span of a rank's tokens.
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

class Context : public StandinTest {
 protected:
  /// What two ranks that share sequences train is what a CPU trains; how often rank 0 called flash attention.
  int64_t flash_calls(const std::string& model, const std::string& lines, const std::string& ring = "") {
    write(recipe_of(model, "r.precision, r.micro_batch = \"bf16\", \"4sp\"\n" + lines));
    for (const char* name : {"cpu", "two", "calls.0", "calls.1"}) fs::remove_all(folder_ / name);
    const Outcome one = train("cpu", "cpu");
    EXPECT_EQ(one.code, 0) << one.output;
    const Outcome two = here(
        "export TYCHO_STANDIN_CALLS=calls; tycho launch -n 2 run x.lua run_dir=two device=cuda "
        "parallel.cp=2 " +
        ring);
    EXPECT_EQ(two.code, 0) << two.output;
    expect_same_run("cpu", "two", 1e-2);
    const std::string calls = text("calls.0"), name = "flash attention ";
    const size_t at = calls.find(name);
    return at == std::string::npos ? 0 : std::stoll(calls.substr(at + name.size()));
  }
};

constexpr const char* kLlama =
    "llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300 }";

TEST_F(Context, TakesFlashAttentionForEachSpan) {
  const int64_t calls = flash_calls(kLlama, "");
  EXPECT_GE(calls, 12 * 2 * 2 * 2) << "steps, micro-batches, blocks, spans";
  EXPECT_EQ(calls % 2, 0);
}

TEST_F(Context, OfDocumentsCallsItForEachRow) {
  const int64_t rows = 4;
  // Documents end with a space.
  EXPECT_GE(flash_calls(kLlama, "r.train_data.eos_token_id, r.eval_data.same.eos_token_id = 220, 220\n"),
            12 * 2 * 2 * 2 * rows);
}

TEST_F(Context, TakesItWithAlibiAndWindows) {
  EXPECT_GT(flash_calls(
                "mpt { width = 32, layers = 2, heads = 4, kv_heads = 1, vocab_size = 300, max_seq_len = 32, "
                "positions = \"alibi\", sliding_window = 8, no_bias = true }",
                ""),
            0);
}

// Rank 0 has the first and the last quarter: three calls with its own keys, two with the other rank's.
TEST_F(Context, OnARingCallsItForEachPairOfSpans) {
  const std::string ring = "parallel.cp_attention=ring";
  EXPECT_GE(flash_calls(kLlama, "", ring), 12 * 2 * 2 * 5) << "steps, micro-batches, blocks, pairs";
  EXPECT_GT(
      flash_calls(kLlama, "r.train_data.eos_token_id, r.eval_data.same.eos_token_id = 220, 220\n", ring), 0);
  EXPECT_GT(flash_calls("mpt { width = 32, layers = 2, heads = 4, kv_heads = 1, vocab_size = 300, "
                        "max_seq_len = 32, positions = \"alibi\", sliding_window = 8, no_bias = true }",
                        "", ring),
            0);
}

TEST_F(Context, TakesProductsWhereItDrops) {
  // Only evaluations do not drop.
  write(recipe_of(
      "gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, attn_dropout = 0.1 }",
      "r.precision = \"bf16\"\nr.eval.every = \"1000ba\"\n"));
  const Outcome on_cpu = run(2, "cpu", "device=cpu parallel.cp=2 ckpt.every=1000ba");
  ASSERT_EQ(on_cpu.code, 0) << on_cpu.output;
  const Outcome on_gpu = here(
      "export TYCHO_STANDIN_CALLS=calls; tycho launch -n 2 run x.lua run_dir=gpu device=cuda parallel.cp=2");
  ASSERT_EQ(on_gpu.code, 0) << on_gpu.output;
  expect_close(numbers("gpu", "loss"), numbers("cpu", "loss"), 1e-2);
  EXPECT_CONTAINS(on_gpu.output, "attention uses plain products instead of flash attention: it drops other");
  const Outcome on_ring =
      here("tycho launch -n 2 run x.lua run_dir=ring device=cuda parallel.cp=2 parallel.cp_attention=ring");
  ASSERT_EQ(on_ring.code, 0) << on_ring.output;
  expect_close(numbers("ring", "loss"), numbers("cpu", "loss"), 1e-2);
}

}  // namespace
}  // namespace tycho
