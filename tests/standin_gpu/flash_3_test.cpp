// attention.flash = 3 on the stand-in, whose library has FlashAttention-3's operators (TYCHO_FLASH_3).
#include "tests/standin_gpu/standin_fixture.h"

namespace tycho {
namespace {

class Flash3 : public StandinTest {
 protected:
  static std::string with_library() { return "export TYCHO_FLASH_ATTN_3=" TYCHO_FLASH_3 "; "; }
  /// Trains x.lua on `ranks` ranks with FlashAttention-3. Returns the calls of rank 0.
  std::map<std::string, int64_t> calls_of_run(const std::string& name, const std::string& pins,
                                              int ranks = 1) {
    outcome_ =
        here(with_library() + "export TYCHO_STANDIN_CALLS=" + name + ".calls; tycho launch -n " +
             std::to_string(ranks) + " run x.lua device=cuda run_dir=" + name + " attention.flash=3 " + pins);
    EXPECT_EQ(outcome_.code, 0) << outcome_.output;
    return calls_in(name + ".calls.0");
  }
  Outcome outcome_;
};

constexpr const char* kName = "FlashAttention-3";
constexpr const char* kLlama =
    "llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, vocab_size = 300 }";
constexpr const char* kWindowed =
    "mpt { width = 32, layers = 2, heads = 4, kv_heads = 1, vocab_size = 300, max_seq_len = 32, "
    "positions = \"alibi\", sliding_window = 8, no_bias = true }";
constexpr const char* kCapped =
    "gemma2 { width = 32, layers = 2, heads = 4, kv_heads = 2, head_width = 16, ffn_width = 64, "
    "vocab_size = 300, sliding_window = 7 }";
const std::string kInBf16 = "r.precision, r.micro_batch = \"bf16\", \"4sp\"\n",
                  kDocuments =
                      kInBf16 + "r.train_data.eos_token_id, r.eval_data.same.eos_token_id = 220, 220\n";

struct Case {
  const char* name;
  std::string model, lines = kInBf16;
  bool equal_bits = true;  // as with flash attention 2, which the stand-in computes alike
};
class Flash3Families : public Flash3, public testing::WithParamInterface<Case> {};

TEST_P(Flash3Families, TrainAsWithFlashAttention2AndOnACpu) {
  const Case& c = GetParam();
  write(recipe_of(c.model, c.lines));
  const Outcome second = train("second", "cuda"), cpu = train("cpu", "cpu");
  ASSERT_EQ(second.code, 0) << second.output;
  ASSERT_EQ(cpu.code, 0) << cpu.output;
  const auto calls = calls_of_run("third", "");
  EXPECT_GE(calls.at(kName), 12 * 2 * 2) << "steps, micro-batches, blocks";
  EXPECT_FALSE(calls.contains("flash attention"));
  EXPECT_EQ(outcome_.output.find("does not use FlashAttention-3"), std::string::npos) << outcome_.output;
  if (c.equal_bits) {
    EXPECT_EQ(numbers("third", "loss"), numbers("second", "loss"));
  }
  expect_same_run("second", "third", 1e-2);
  expect_same_run("cpu", "third", 1e-2);
}

INSTANTIATE_TEST_SUITE_P(
    , Flash3Families,
    testing::Values(Case{"llama", kLlama}, Case{"llama_documents", kLlama, kDocuments},
                    Case{"llama_recompute", kLlama, kInBf16 + "r.recompute.mode = \"full\"\n"},
                    Case{"llama_norms", kLlama, kInBf16 + "r.recompute.mode = \"norms\"\n"},
                    Case{"mpt_alibi_and_windows", kWindowed},
                    Case{"gemma2_soft_caps", kCapped, kInBf16, /*equal_bits=*/false},
                    Case{"gpt2",
                         "gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 300, "
                         "max_seq_len = 32 }"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Flash3, OfRanksThatShareSequencesIsThatOfOne) {
  for (const std::string ring : {"", " parallel.cp_attention=ring"})
    for (const auto& [name, model, lines] : {std::tuple("llama", kLlama, kInBf16),
                                             {"documents", kLlama, kDocuments},
                                             {"windows", kWindowed, kInBf16},
                                             {"caps", kCapped, kInBf16}}) {
      SCOPED_TRACE(name + ring);
      write(recipe_of(model, lines));
      for (const char* folder : {"cpu", "two", "two.calls.0", "two.calls.1"})
        std::filesystem::remove_all(folder_ / folder);
      ASSERT_EQ(train("cpu", "cpu").code, 0);
      const auto calls = calls_of_run("two", "parallel.cp=2" + ring, 2);
      EXPECT_GE(calls.at(kName), 12 * 2 * 2 * 2) << "steps, micro-batches, blocks, spans";
      EXPECT_FALSE(calls.contains("flash attention"));
      expect_same_run("cpu", "two", 1e-2);
    }
}

TEST_F(Flash3, LeavesToOthersWhatItDoesNotSupport) {
  const std::string gpt2 = "gpt2 { width = 32, layers = 2, heads = 4, vocab_size = 300, max_seq_len = 32, ";
  write(recipe_of(gpt2 + "attn_dropout = 0.1 }", kInBf16 + "r.eval.every = \"1000ba\"\n"));
  const auto calls = calls_of_run("drops", "");
  EXPECT_GE(calls.at("flash attention"), 12 * 2 * 2) << "steps, micro-batches, blocks";
  EXPECT_GT(calls.at(kName), 0) << "evaluations drop nothing";
  EXPECT_CONTAINS(outcome_.output, "attention does not use FlashAttention-3: it does not support dropout");
  EXPECT_EQ(train("none", "cuda", "attention.flash=3").code, 11) << "these need the library";
  EXPECT_EQ(train("fp32", "cuda", "precision=fp32 attention.flash=3").code, 0) << "nothing needs it";
  const Outcome plan = here("tycho plan x.lua device=cuda attention.flash=3");
  EXPECT_CONTAINS(plan.output, ", without FlashAttention-3: it does not support dropout");
}

TEST_F(Flash3, AResumedRunHasTheBitsOfAnUninterruptedOne) {
  write(recipe_of(kLlama, kInBf16 + "r.max_duration = \"24ba\"\n"));
  calls_of_run("whole", "");
  calls_of_run("parts", "max_duration=12ba"), calls_of_run("parts", "");
  EXPECT_EQ(numbers("whole", "loss"), numbers("parts", "loss"));
  EXPECT_TRUE(final_weights("whole") == final_weights("parts"));
  const Outcome second = train("parts", "cuda", "max_duration=26ba");
  ASSERT_EQ(second.code, 0) << second.output;
  EXPECT_CONTAINS(second.output, "attention.flash");
}

TEST_F(Flash3, AddsInAnyOrderWhenItMay) {
  write(recipe_of(kLlama, kInBf16));
  const Outcome refused = here(with_library() +
                               "tycho run x.lua device=cuda run_dir=fixed attention.flash=3 "
                               "attention.deterministic=false");
  EXPECT_EQ(refused.code, 1) << refused.output;
  EXPECT_CONTAINS(refused.output, "the stand-in's FlashAttention-3 adds in any order unless it is told");
}

TEST_F(Flash3, WithoutItsLibraryARunDoesNotStart) {
  write(recipe_of(kLlama, kInBf16));
  const Outcome none = train("run", "cuda", "attention.flash=3");
  EXPECT_EQ(none.code, 11) << none.output;
  EXPECT_CONTAINS(none.output, "[attention] expected FlashAttention-3, got no ");
  EXPECT_CONTAINS(none.output,
                  "flash_attn_3/_C*.so and no TYCHO_FLASH_ATTN_3. Install the package flash_attn_3 for this "
                  "LibTorch, name its library in TYCHO_FLASH_ATTN_3, or set attention.flash = 2");
  write("no library", "text.so");
  const Outcome text = train("run", "cuda", "attention.flash=3", "export TYCHO_FLASH_ATTN_3=$PWD/text.so;");
  EXPECT_EQ(text.code, 11) << text.output;
  EXPECT_CONTAINS(text.output, "[attention] expected FlashAttention-3 for this LibTorch, got: ");
  EXPECT_CONTAINS(text.output, "text.so");
  const Outcome other = train("run", "cuda", "attention.flash=3", "export TYCHO_FLASH_ATTN_3=libcuda.so.1;");
  EXPECT_EQ(other.code, 11) << other.output;
  EXPECT_CONTAINS(other.output, "in libcuda.so.1, got a library without the operator flash_attn_3::fwd");
  EXPECT_EQ(train("cpu", "cpu", "attention.flash=3").code, 0) << "a CPU has attention of its own";
}

TEST_F(Flash3, AnotherVersionIsRefusedByWhatItLacks) {
  write(recipe_of(kLlama, kInBf16));
  const std::string old = with_library() + "export TYCHO_STANDIN_FLASH_3=old; ";
  const Outcome outcome = train("run", "cuda", "attention.flash=3", old);
  EXPECT_EQ(outcome.code, 11) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "[attention] expected another version of FlashAttention-3 in ");
  EXPECT_CONTAINS(
      outcome.output,
      ", got flash_attn_3::bwd with float softmax_scale for float?, without int window_size_left, "
      "without int window_size_right, without bool deterministic, that asks for rng_state. ");
}

TEST_F(Flash3, OtherGpusAreRefused) {
  write(recipe_of(kLlama, kInBf16));
  const Outcome outcome =
      train("run", "cuda", "attention.flash=3", with_library() + "export TYCHO_STANDIN_CAPABILITY=100; ");
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_CONTAINS(outcome.output,
                  "[plan] attention.flash = 3 needs compute capability 9.x (H100, H200), and ");
  EXPECT_CONTAINS(outcome.output, " has 10.0: set it to 2");
}

TEST_F(Flash3, DoctorSaysWhetherItIsThere) {
  EXPECT_CONTAINS(here("tycho doctor").output, "ok    flash_attn_3  not found");
  EXPECT_CONTAINS(here(with_library() + "tycho doctor").output, "ok    flash_attn_3  " TYCHO_FLASH_3);
  const Outcome old = here(with_library() + "export TYCHO_STANDIN_FLASH_3=old; tycho doctor");
  EXPECT_CONTAINS(old.output, "warn  flash_attn_3  [attention] expected another version of FlashAttention-3");
  EXPECT_CONTAINS(here(with_library() + "tycho version --engine").output, TYCHO_FLASH_3);
}

TEST_F(Flash3, ThePeakOfARunIsWithinItsPlan) {
  for (const auto& [name, model] : {std::pair("llama", kLlama), {"windows", kWindowed}, {"caps", kCapped}}) {
    SCOPED_TRACE(name);
    write(recipe_of(model, "r.precision, r.micro_batch = \"bf16\", \"1sp\"\n"));
    const double certain = certain_bytes("attention.flash=3");
    calls_of_run(name, "");
    const double peak = numbers(name, "memory_bytes").rbegin()->second;
    EXPECT_LE(peak, certain);
    EXPECT_GT(peak, certain / 2);
  }
}

}  // namespace
}  // namespace tycho
