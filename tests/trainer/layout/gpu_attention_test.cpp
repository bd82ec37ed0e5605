// What attention takes on a GPU, against sums done by hand.
#include "trainer/layout/gpu_attention.h"

#include <gtest/gtest.h>

#include <string>

#include "trainer/base/attention_limits.h"
#include "trainer/layout/decoder_slots.h"

namespace tycho {
namespace {

MptConfig mpt_7b() {
  MptConfig mpt;
  mpt.width = 4096, mpt.layers = 32, mpt.heads = 32;
  return mpt;
}

/// Bytes of what blocks leave in LibTorch's memory, on a GPU.
int64_t library_bytes(const DecoderSpec& spec, bool bf16, BatchShape shape, const CpShape& cp = {},
                      Recompute recompute = Recompute::kNone) {
  const int64_t compute_bytes = bf16 ? 2 : 4;
  const ActivationSpecs specs = decoder_activations(spec, shape, compute_bytes, /*on_gpu=*/true, {}, cp);
  return activation_bytes(specs, {recompute, 1}, compute_bytes).of_library;
}

TEST(GpuAttention, LeavesItsOutputAndALogSumExpOfEachBlock) {
  const DecoderSpec spec = decoder_spec({mpt_7b()});
  const int64_t of_block = 2 * 2048 * 32 * (2 * 128 + 4);
  EXPECT_EQ(library_bytes(spec, /*bf16=*/true, {2, 2048}), 32 * of_block);
  EXPECT_EQ(library_bytes(spec, /*bf16=*/true, {2, 2048}, {}, Recompute::kSelective), 32 * of_block);
  EXPECT_EQ(library_bytes(spec, /*bf16=*/true, {2, 2048}, {}, Recompute::kFull), of_block)
      << "given back after each forward";
  EXPECT_EQ(library_bytes(spec, /*bf16=*/false, {2, 2048}), 0) << "plain products write into the arena";
  const ActivationSpecs on_cpu = decoder_activations(spec, {2, 2048}, 2);
  EXPECT_EQ(activation_bytes(on_cpu, {}, 2).of_library, 0);
  const ActivationBytes on_gpu =
      activation_bytes(decoder_activations(spec, {2, 2048}, 2, /*on_gpu=*/true), {}, 2);
  EXPECT_EQ(activation_bytes(on_cpu, {}, 2).kept, on_gpu.kept + on_gpu.of_library);
}

TEST(GpuAttention, AddsWhatItsBackwardTakes) {
  const GpuAttentionBytes bytes =
      gpu_attention_bytes(decoder_spec({mpt_7b()}), /*bf16=*/true, {2, 2048}, {}, 1);
  // dq, dk and dv in bf16; fp32 sums for dq, and a number per query.
  EXPECT_EQ(bytes.passing, 2 * 4096 * 128 * (3 * 32) + 4 * 4096 * 32 * (128 + 1));
}

// A GPU of 132 multiprocessors at 32 heads: ceil(132 / 32) sums.
TEST(GpuAttention, AddsDqInAFixedOrderInSeveralSums) {
  LlamaConfig llama;
  llama.width = 4096, llama.heads = 32, llama.kv_heads = 8, llama.layers = 1;
  const DecoderSpec spec = decoder_spec({llama});
  const int64_t sum = 4 * int64_t{8192} * 32 * 128;
  const GpuAttentionBytes any = gpu_attention_bytes(spec, /*bf16=*/true, {1, 8192}, {}, 1),
                          fixed = gpu_attention_bytes(spec, /*bf16=*/true, {1, 8192}, {}, 132);
  EXPECT_EQ(any.copies, 1);
  EXPECT_EQ(fixed.copies, 5);
  EXPECT_EQ(fixed.passing - any.passing, 4 * sum);
  EXPECT_EQ(fixed.passing - any.passing + sum, 671'088'640);
  EXPECT_EQ(gpu_attention_bytes(spec, /*bf16=*/true, {8, 8192}, {}, 132).copies, 1);
  EXPECT_EQ(gpu_attention_bytes(spec, /*bf16=*/false, {1, 8192}, {}, 132).copies, 0) << "plain products";
  const DecoderSpec free = decoder_spec({llama}, {.deterministic = false});
  EXPECT_EQ(gpu_attention_bytes(free, /*bf16=*/true, {1, 8192}, {}, 132).passing, any.passing);
  EXPECT_EQ(cudnn_attention_obstacle(free, /*bf16=*/true, 8192), nullptr);
  EXPECT_STREQ(cudnn_attention_obstacle(decoder_spec({Gemma3Config()}), /*bf16=*/true, 8192),
               "it does not support windows");
}

TEST(GpuAttention, CudnnTakesPlainCausalAttentionOfHeadsUpTo128) {
  const GpuAttentionCase plain = {.bf16 = true, .head_dim = 128, .seq = 2048};
  EXPECT_EQ(cudnn_obstacle(plain), nullptr);
  const auto obstacle = [&](auto change) {
    GpuAttentionCase changed = plain;
    change(changed);
    const char* text = cudnn_obstacle(changed);
    return text == nullptr ? std::string() : std::string(text);
  };
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.bf16 = false; }), "it needs precision=bf16");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 136; }), "it needs a head width of at most 128");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 100; }),
            "it needs a head width that is a multiple of 8");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.window = 2046; }), "it does not support windows");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.window = 2047; }), "")
      << "every query sees all earlier keys";
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.seq = 1; }), "it needs at least two tokens");
  for (bool GpuAttentionCase::*rule :
       {&GpuAttentionCase::softcap, &GpuAttentionCase::alibi, &GpuAttentionCase::documents,
        &GpuAttentionCase::cut, &GpuAttentionCase::drops})
    EXPECT_NE(obstacle([&](GpuAttentionCase& c) { c.*rule = true; }), "");
}

TEST(GpuAttention, FlashAttention3TakesSoftCapsAndNoDropout) {
  const GpuAttentionCase plain = {.bf16 = true, .head_dim = 128, .seq = 2048};
  const auto obstacle = [&](auto change) {
    GpuAttentionCase changed = plain;
    change(changed);
    const char* text = flash_3_obstacle(changed);
    return text == nullptr ? std::string() : std::string(text);
  };
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.softcap = c.cut = c.documents = true, c.window = 4; }), "");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.bf16 = false; }), "it needs precision=bf16");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.drops = true; }), "it does not support dropout");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.softcap = c.alibi = true; }),
            "it does not support a soft cap together with ALiBi");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 100; }),
            "it needs a head width that is a multiple of 8");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 192; }), "");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 200; }),
            "with attention.deterministic it needs a head width of at most 192");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 192, c.alibi = true; }),
            "with ALiBi and attention.deterministic it needs a head width of at most 184");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 256, c.any_order = true; }), "");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 264, c.any_order = true; }),
            "it needs a head width of at most 256");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.head_dim = 256, c.any_order = c.alibi = true; }),
            "with ALiBi it needs a head width of at most 248");
  EXPECT_EQ(obstacle([](GpuAttentionCase& c) { c.alibi = true, c.seq = 65537; }),
            "with ALiBi it supports at most 65,536 positions");
  EXPECT_EQ(flash_3_width(8), 64);
  EXPECT_EQ(flash_3_width(72), 96);
  EXPECT_EQ(flash_3_width(128), 128);
  EXPECT_EQ(flash_3_width(136), 192);
  EXPECT_EQ(flash_3_width(200), 256);
}

TEST(GpuAttention, FlashAttention3TakesOneSumOfDqAndNoOtherGradients) {
  LlamaConfig llama;
  llama.width = 4096, llama.heads = 32, llama.kv_heads = 8, llama.layers = 1;
  const DecoderSpec spec = decoder_spec({llama}, {.flash = 3});
  const GpuAttentionBytes bytes = gpu_attention_bytes(spec, /*bf16=*/true, {1, 8192}, {}, 132);
  EXPECT_EQ(bytes.copies, 0);
  // Rounded up to blocks of 80 queries: 8,240. Of heads that share keys, sums of dk and dv.
  const int64_t sums = 4 * (32 * int64_t{8240} * (128 + 2) + 2 * 8 * int64_t{8192} * 128);
  EXPECT_EQ(bytes.passing, sums);
  const GpuAttentionBytes gathered = gpu_attention_bytes(spec, /*bf16=*/true, {1, 8192}, {4}, 132);
  EXPECT_EQ(gathered.passing, 2 * 128 * (2048 * 32 + 8192 * 2 * 8) +
                                  4 * (32 * int64_t{2080} * (128 + 2) + 2 * 8 * int64_t{8192} * 128));
  const GpuAttentionBytes ring = gpu_attention_bytes(spec, /*bf16=*/true, {1, 8192}, {4, 0, true}, 132);
  EXPECT_EQ(ring.passing, 2 * 128 * (1024 * 32 + 1024 * 2 * 8) + 4 * 1024 * 32 * 128 +
                              4 * (32 * int64_t{1040} * (128 + 2) + 2 * 8 * int64_t{1024} * 128));
  MptConfig mpt = mpt_7b();
  mpt.positions = PositionKind::kAlibi;
  // Heads of 136, for which it has a kernel of 192: q, k, v, out and dout as copies, dq, dk and dv.
  EXPECT_EQ(gpu_attention_bytes(decoder_spec({mpt}, {.flash = 3}), /*bf16=*/true, {1, 2048}, {}, 1).passing,
            2 * 2048 * 136 * (8 * 32) + 4 * 2048 * 32 * (192 + 2));
}

TEST(GpuAttention, FlashAttention3FallsBackToFlashAttention2) {
  const DecoderSpec gemma2 = decoder_spec({Gemma2Config()}, {.flash = 3}),
                    free = decoder_spec({Gemma2Config()}, {.deterministic = false, .flash = 3});
  EXPECT_STREQ(flash_3_attention_obstacle(gemma2, true, 2048),
               "with attention.deterministic it needs a head width of at most 192");
  EXPECT_STREQ(gpu_attention_obstacle(gemma2, true, 2048), "it does not support a soft cap");
  EXPECT_FALSE(uses_flash_3(gemma2, true, 2048, 1));
  EXPECT_EQ(flash_3_attention_obstacle(free, true, 2048), nullptr);
  EXPECT_EQ(gpu_attention_obstacle(free, true, 2048), nullptr);
  EXPECT_TRUE(uses_flash_3(free, true, 2048, 1));
  EXPECT_GT(library_bytes(free, /*bf16=*/true, {1, 2048}), 0) << "its output stays where it is";
  MptConfig mpt = mpt_7b();
  mpt.attn_dropout = 0.1;
  const DecoderSpec drops = decoder_spec({mpt}, {.flash = 3});
  EXPECT_STREQ(flash_3_attention_obstacle(drops, true, 2048), "it does not support dropout");
  EXPECT_TRUE(uses_flash_3(drops, true, 2048, 1)) << "in evaluations";
  EXPECT_EQ(gpu_attention_bytes(drops, true, {2, 2048}, {}, 1).passing,
            gpu_attention_bytes(decoder_spec({mpt}), true, {2, 2048}, {}, 1).passing);
}

std::string gradient_problem(int64_t head_dim, float dropout, bool alibi, int compute_capability) {
  MptConfig mpt = mpt_7b();
  mpt.width = head_dim * 16, mpt.heads = 16, mpt.attn_dropout = dropout;
  if (alibi) mpt.positions = PositionKind::kAlibi;
  return flash_gradient_problem(decoder_spec({mpt}), /*bf16=*/true, 2048, 1,
                                {.num_sms = 142, .compute_capability = compute_capability});
}

TEST(GpuAttention, WideHeadsHaveNoGradientOnSmallGpus) {
  for (const int small : {86, 89, 120}) {
    EXPECT_NE(gradient_problem(200, 0, false, small), "");
    EXPECT_NE(gradient_problem(224, 0, false, small), "");
    EXPECT_EQ(gradient_problem(192, 0.1, false, small), "");
    EXPECT_EQ(gradient_problem(256, 0, false, small), "");
    EXPECT_NE(gradient_problem(256, 0.1, false, small), "");
    EXPECT_NE(gradient_problem(192, 0, true, small), "") << "ALiBi adds eight columns";
    EXPECT_EQ(gradient_problem(184, 0, true, small), "");
  }
  for (const int large : {80, 90, 100, 0}) EXPECT_EQ(gradient_problem(224, 0.1, false, large), "") << large;
  EXPECT_EQ(
      gradient_problem(224, 0, false, 89),
      "expected heads that flash attention has a gradient for, got a width of 224: with compute capability "
      "8.9 at "
      "most 192, or more than 224. Use narrower heads, or precision=fp32, which multiplies without flash "
      "attention,");
}

TEST(GpuAttention, GrowsWithTheTokensUnderAlibi) {
  MptConfig mpt = mpt_7b();
  mpt.positions = PositionKind::kAlibi;
  const DecoderSpec spec = decoder_spec({mpt});
  const int64_t one = gpu_attention_bytes(spec, /*bf16=*/true, {1, 2048}, {}, 1).passing;
  // Heads of 136 instead of 128: q, k, v, out and dout as copies, besides dq, dk and dv.
  EXPECT_EQ(one, 2 * 2048 * 136 * (8 * 32) + 4 * 2048 * 32 * (160 + 1));
  EXPECT_EQ(gpu_attention_bytes(spec, /*bf16=*/true, {1, 16384}, {}, 1).passing, 8 * one);
}

TEST(GpuAttention, CountsKeysOfSharedHeadsForEveryQueryHead) {
  LlamaConfig llama;
  llama.width = 256, llama.heads = 8, llama.kv_heads = 2, llama.layers = 1;
  EXPECT_EQ(gpu_attention_bytes(decoder_spec({llama}), /*bf16=*/true, {1, 128}, {}, 1).passing,
            2 * 128 * 32 * (8 + 4 + 16) + 4 * 128 * 8 * (32 + 1));
}

TEST(GpuAttention, HoldsTheScoresOfAFewHeadsUnderASoftCap) {
  MptConfig mpt = mpt_7b();
  mpt.attn_softcap = 30;
  const DecoderSpec spec = decoder_spec({mpt});
  EXPECT_EQ(library_bytes(spec, /*bf16=*/true, {8, 2048}), 0);
  EXPECT_EQ(gpu_attention_bytes(spec, /*bf16=*/true, {8, 2048}, {}, 1).passing,
            5 * 4 * 4 * 2048 * 2048);  // 4 heads at once
  EXPECT_EQ(gpu_attention_bytes(spec, /*bf16=*/true, {8, 8192}, {}, 1).passing, 5 * 4 * int64_t{8192} * 8192);
}

TEST(GpuAttention, LooksAtEveryBlock) {
  MptConfig mpt = mpt_7b();
  mpt.heads = 16;  // of 256: too wide with ALiBi's columns
  mpt.positions = PositionKind::kAlibi;
  mpt.blocks = {.order = {"default", "far"}, .kinds = {{"far", {.nope = true}}}};
  const GpuAttentionBytes bytes = gpu_attention_bytes(decoder_spec({mpt}), /*bf16=*/true, {1, 2048}, {}, 1);
  EXPECT_EQ(library_bytes(decoder_spec({mpt}), /*bf16=*/true, {1, 2048}),
            16 * int64_t{2048} * 16 * (2 * 256 + 4))
      << "of the 16 blocks without ALiBi";
  EXPECT_EQ(bytes.passing, 5 * 4 * 4 * 2048 * 2048);  // of the others
  EXPECT_STREQ(gpu_attention_obstacle(decoder_spec({mpt}), true, 2048),
               "with ALiBi it needs a head width of at most 248");
}

TEST(GpuAttention, NamesWhatFlashAttentionCannotDo) {
  const auto obstacle = [](const MptConfig& mpt, bool bf16 = true, int64_t seq = 2048) {
    const char* text = gpu_attention_obstacle(decoder_spec({mpt}), bf16, seq);
    return std::string(text ? text : "");
  };
  EXPECT_EQ(obstacle(mpt_7b()), "");
  EXPECT_EQ(obstacle(mpt_7b(), /*bf16=*/false), "it needs precision=bf16");
  MptConfig mpt = mpt_7b();
  mpt.positions = PositionKind::kAlibi;
  EXPECT_EQ(obstacle(mpt), "");
  EXPECT_EQ(obstacle(mpt, true, 65537), "with ALiBi it supports at most 65,536 positions");
  mpt.heads = 16;  // heads of 256
  EXPECT_EQ(obstacle(mpt), "with ALiBi it needs a head width of at most 248");
  mpt.positions = PositionKind::kLearned;
  EXPECT_EQ(obstacle(mpt), "");
  mpt.attn_softcap = 30;
  EXPECT_EQ(obstacle(mpt), "it does not support a soft cap");
  mpt.attn_softcap = 0, mpt.heads = 1024;
  EXPECT_EQ(obstacle(mpt), "it needs a head width that is a multiple of 8");
}

// Gemma's heads are as wide as flash attention allows; Gemma 2 caps their scores.
TEST(GpuAttention, OfGemmaIsFlashUnlessScoresAreCapped) {
  EXPECT_EQ(gpu_attention_obstacle(decoder_spec({Gemma3Config()}), true, 2048), nullptr);
  Gemma2Config gemma2;
  EXPECT_STREQ(gpu_attention_obstacle(decoder_spec({gemma2}), true, 2048), "it does not support a soft cap");
  gemma2.attn_softcap.reset();
  EXPECT_EQ(gpu_attention_obstacle(decoder_spec({gemma2}), true, 2048), nullptr);
}

TEST(GpuAttention, OfSequencesThatRanksShareHasSomeQueriesAndAllKeys) {
  LlamaConfig llama;
  llama.width = 256, llama.heads = 8, llama.kv_heads = 2, llama.layers = 3;
  const DecoderSpec spec = decoder_spec({llama});
  EXPECT_EQ(gpu_attention_obstacle(spec, true, 2048, 2), nullptr);
  const GpuAttentionBytes bytes = gpu_attention_bytes(spec, /*bf16=*/true, {2, 2048}, {4}, 1);
  EXPECT_EQ(library_bytes(spec, /*bf16=*/true, {2, 2048}, {4}), 4 * 3 * 8 * (2 * 512))
      << "the output of two spans is an activation";
  EXPECT_EQ(bytes.passing, 2 * 32 * (2 * 512 * 8 + 2 * 2048 * (4 + 16)) + 4 * 2 * 512 * 8 * (32 + 1));
}

// A call has 256 of a rank's 512 queries and as many keys of a sequence.
TEST(GpuAttention, OfARingHasQueriesAndKeysOfTwoRanks) {
  LlamaConfig llama;
  llama.width = 256, llama.heads = 8, llama.kv_heads = 2, llama.layers = 3;
  const DecoderSpec spec = decoder_spec({llama});
  const GpuAttentionBytes bytes = gpu_attention_bytes(spec, /*bf16=*/true, {2, 2048}, {4, 0, true}, 1);
  EXPECT_EQ(library_bytes(spec, /*bf16=*/true, {2, 2048}, {4, 0, true}), 0)
      << "the log-sum-exp of all parts is an activation, too";
  EXPECT_EQ(bytes.passing,
            2 * 32 * 512 * (8 + 4 + 16) + 4 * 2 * 256 * 8 * (32 + 1) + 4 * 512 * 8 * 32 /* in fp32 */);
}

TEST(GpuAttention, OfSequencesThatRanksShareIsProductsWhereItDrops) {
  MptConfig mpt = mpt_7b();
  mpt.attn_dropout = 0.1;
  const DecoderSpec spec = decoder_spec({mpt});
  EXPECT_EQ(gpu_attention_obstacle(spec, true, 2048), nullptr);
  EXPECT_STREQ(gpu_attention_obstacle(spec, true, 2048, 2),
               "it drops other weights in every part of a sequence that parallel.cp shares");
  const GpuAttentionBytes bytes = gpu_attention_bytes(spec, /*bf16=*/true, {1, 32768}, {4}, 1);
  EXPECT_EQ(library_bytes(spec, /*bf16=*/true, {1, 32768}, {4}), 0);
  EXPECT_EQ(bytes.passing, 5 * 4 * int64_t{32768} / 4 * 32768) << "of one head";
  EXPECT_EQ(gpu_attention_bytes(spec, /*bf16=*/true, {1, 32768}, {4, 0, true}, 1).passing,
            5 * 4 * int64_t{8192} * 8192 + 4 * int64_t{8192} * 32768)
      << "scores over the keys of a rank, and a mask over all";
}

}  // namespace
}  // namespace tycho
