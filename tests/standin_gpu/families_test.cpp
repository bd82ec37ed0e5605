// Every family trains on the stand-in what it trains on a CPU, on one rank and on two.
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

struct Case {
  const char* name;
  const char* model;
  const char* lines;
  double tolerance;  // of losses, relative: fp32 sums in another order; bf16 keeps eight bits of every
                     // activation
};

// Muon divides by norms of tiny gradients, which magnifies what rounding left.
constexpr double kFp32 = 2e-5, kMuon = 5e-4, kBf16 = 1e-2;
const char* const kInBf16 = "r.precision = \"bf16\"\n";

const Case kCases[] = {
    {"llama", "llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300 }",
     "", kFp32},
    {"llama_bf16",
     "llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300 }", kInBf16,
     kBf16},
    {"gpt2_norms", "gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32 }",
     "r.recompute.mode, r.micro_batch = \"norms\", \"2sp\"\n", kFp32},
    {"llama_recompute",
     "llama { width = 32, layers = 2, heads = 4, ffn_width = 64, vocab_size = 300, tied = true }",
     "r.recompute.mode, r.micro_batch = \"full\", \"2sp\"\n", kFp32},
    {"mpt_alibi",
     "mpt { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, positions = \"alibi\", "
     "clip_qkv = 6, "
     "qk_ln = true }",
     "", kFp32},
    {"mpt_alibi_bf16",
     "mpt { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, positions = \"alibi\" }",
     kInBf16, kBf16},
    {"mpt_window_bf16",
     "mpt { width = 32, layers = 2, heads = 4, kv_heads = 1, vocab_size = 300, max_seq_len = 32, positions = "
     "\"rope\", "
     "sliding_window = 8, no_bias = true }",
     kInBf16, kBf16},
    {"mpt_softcap",
     "mpt { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, attn_softcap = 20, "
     "resid_dropout = "
     "0.1, attn_dropout = 0.1 }",
     "", kFp32},
    {"gemma3",
     "gemma3 { width = 32, layers = 2, heads = 4, kv_heads = 2, head_width = 16, ffn_width = 64, vocab_size "
     "= "
     "300, sliding_window = 7, layer_types = { \"sliding\", \"full\" } }",
     "", kFp32},
    {"gemma3_bf16",
     "gemma3 { width = 32, layers = 2, heads = 4, kv_heads = 2, head_width = 16, ffn_width = 64, vocab_size "
     "= "
     "300, sliding_window = 7, layer_types = { \"sliding\", \"full\" } }",
     kInBf16, kBf16},
    {"olmo2", "olmo2 { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300 }",
     "r.recompute.mode, r.micro_batch = \"full\", \"2sp\"\n", kFp32},
    {"phi3",
     "phi3 { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300, "
     "partial_rotary_factor = 0.5, resid_dropout = 0.1 }",
     "", kFp32},
    {"gpt2",
     "gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, embedding_dropout = 0.1 "
     "}",
     "r.optimizer = t.optim.muon { lr = 0.005 }\n", kMuon},
    {"gpt2_bf16", "gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32 }",
     "r.precision, r.master_weights = \"bf16\", \"stochastic\"\n", kBf16},
};

class Families : public StandinTest, public testing::WithParamInterface<Case> {};

TEST_P(Families, TrainAsOnACpuOnOneRankAndOnTwo) {
  const Case& c = GetParam();
  write(recipe_of(c.model, c.lines));
  for (const char* device : {"cpu", "cuda"}) {
    const Outcome one = train(device, device);
    ASSERT_EQ(one.code, 0) << one.output;
  }
  expect_same_run("cpu", "cuda", c.tolerance);
  const Outcome two = run(2, "two", "device=cuda");
  ASSERT_EQ(two.code, 0) << two.output;
  // Ranks drop different elements, so with dropout two are compared with two.
  const bool drops = std::string(c.model).find("dropout") != std::string::npos;
  if (drops) {
    const Outcome on_cpu = run(2, "two_on_cpu", "device=cpu");
    ASSERT_EQ(on_cpu.code, 0) << on_cpu.output;
  }
  expect_same_run(drops ? "two_on_cpu" : "cpu", "two", c.tolerance);
}

class TrimmedRows : public StandinTest {
 protected:
  /// Prompts with responses of up to a hundred bytes, in batches of 64 to 128 tokens.
  std::string in_trimmed_rows(const std::string& model) const {
    std::ofstream rows(folder_ / "rows.jsonl");
    for (int i = 0; i < 64; ++i)
      rows << R"({"prompt": "count", "response": ")"
           << std::string(static_cast<size_t>(3 + i * 37 % 100), '7') << "\"}\n";
    const std::string data = "path = \"rows.jsonl\", eos_token_id = 0, trim_padding = true";
    return recipe_of(model, "r.seq_len = 256\nr.train_data = t.data.chat { " + data +
                                ", bucket_batches = 4 }\nr.eval_data.same = t.data.chat { " + data + " }\n" +
                                kInBf16);
  }
};

TEST_F(TrimmedRows, TrainAsOnACpuOnOneRankAndOnTwo) {
  for (const char* model :
       {"llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300 }",
        "mpt { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 256, positions = \"alibi\" "
        "}"}) {
    SCOPED_TRACE(model);
    write(in_trimmed_rows(model));
    for (const char* name : {"cpu", "cuda", "two"}) std::filesystem::remove_all(folder_ / name);
    for (const char* device : {"cpu", "cuda"}) {
      const Outcome one = train(device, device);
      ASSERT_EQ(one.code, 0) << one.output;
    }
    expect_same_run("cpu", "cuda", kBf16);
    const Outcome two = run(2, "two", "device=cuda");
    ASSERT_EQ(two.code, 0) << two.output;
    expect_same_run("cpu", "two", kBf16);
  }
}

INSTANTIATE_TEST_SUITE_P(, Families, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tycho
