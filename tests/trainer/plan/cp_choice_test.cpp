// When a ring of keys and values is taken.
#include "trainer/plan/cp_choice.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

CpForm form(CpAttention attention, double step_s, bool fits = true) {
  return {attention, 1'000'000'000, 64'000'000, step_s / 10, step_s, fits};
}

TEST(CpChoice, IsTheFastestThatFits) {
  using enum CpAttention;
  EXPECT_EQ(faster_form({form(kGather, 1), form(kRing, 0.9)}), kRing);
  EXPECT_EQ(faster_form({form(kGather, 1), form(kRing, 1)}), kGather) << "the simpler one of equals";
  EXPECT_EQ(faster_form({form(kGather, 1), form(kRing, 0.9, false)}), kGather);
  EXPECT_EQ(faster_form({form(kGather, 1, false), form(kRing, 2)}), kRing);
  EXPECT_EQ(faster_form({form(kGather, 1, false), form(kRing, 0.9, false)}), kGather);
  EXPECT_EQ(faster_form({form(kGather, 0), form(kRing, 0)}), kGather) << "no machine";
}

TEST(CpChoice, IsShownWithWhatEachFormTakes) {
  EXPECT_EQ(
      forms_text({form(CpAttention::kGather, 1), form(CpAttention::kRing, 0.5, false)}, CpAttention::kGather),
      "  gather                1.00 GB  buffers 64.0 MB, waits 0.1 s of 1 s, taken\n"
      "  ring                  1.00 GB  buffers 64.0 MB, waits 50 ms of 0.5 s, does not fit\n");
}

/// Llama 3 8B, sequences of 131,072 tokens on 32 ranks of nodes of 8 H100.
std::vector<CpForm> forms_of(int64_t kv_heads, int64_t cp, int64_t tp) {
  TrainConfig config;
  std::get<LlamaConfig>(config.model.value) = {.width = 4096,
                                               .layers = 32,
                                               .heads = 32,
                                               .kv_heads = kv_heads,
                                               .ffn_width = 14336,
                                               .vocab_size = 128256,
                                               .tied = false};
  config.train_data.value = MdsConfig{.local_dir = "data"};
  config.precision = Precision::kBf16, config.seq_len = 131072;
  config.recompute = {Recompute::kFull, 1};
  config.global_batch = {32, DurationUnit::kSample}, config.micro_batch = Duration{1, DurationUnit::kSample};
  config.machine.name = "h100";
  config.parallel.cp = cp, config.parallel.tp = tp, config.parallel.dp_shard = -1;
  return compare_cp_forms(config, model_layout(config.model), {.num_ranks = 32});
}

TEST(CpChoice, IsARingWhereTheNetworkIsSlowAndAttentionIsLong) {
  EXPECT_EQ(faster_form(forms_of(8, 8, 1)), CpAttention::kGather) << "NVLink, few heads of keys";
  EXPECT_EQ(faster_form(forms_of(8, 4, 8)), CpAttention::kRing) << "one card of a node for each group";
}

}  // namespace
}  // namespace tycho
