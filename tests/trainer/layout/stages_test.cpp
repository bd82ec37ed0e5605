// Blocks on stages: how a model is cut, and what of its units and activations is left.
#include "trainer/layout/stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "trainer/layout/tp_parts.h"
#include "trainer/layout/unit_layout.h"

namespace tycho {
namespace {

TrainConfig config_of(int64_t layers, int64_t pp, int64_t chunks = 1) {
  LlamaConfig llama;
  llama.width = 64, llama.heads = 4, llama.kv_heads = 2, llama.ffn_width = 128, llama.vocab_size = 64;
  llama.layers = layers;
  TrainConfig config;
  config.model.value = llama;
  config.seq_len = 16;
  config.parallel.pp = pp, config.parallel.pp_chunks = chunks;
  if (chunks > 1) config.parallel.pp_schedule = PipelineSchedule::kInterleaved;
  return config;
}

TEST(Stages, HaveEqualPartsOfBlocks) {
  EXPECT_EQ(blocks_of_parts(config_of(8, 2)), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(blocks_of_parts(config_of(8, 2, 2)), (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(blocks_of_parts(config_of(4, 4)), (std::vector<int64_t>{1, 1, 1, 1}));
  for (const int64_t layers : {5, 7, 11, 30})
    for (const int64_t pp : {2, 3, 5}) {
      const std::vector<int64_t> sizes = blocks_of_parts(config_of(layers, pp));
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), layers);
      const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
      EXPECT_LE(*most - *least, 1) << layers << " on " << pp;
    }
}

TEST(Stages, HaveFewerBlocksBesideAHeadThatTakesLong) {
  TrainConfig config = config_of(8, 2);
  std::get<LlamaConfig>(config.model.value).vocab_size = 40000;  // as much work as 60 blocks
  EXPECT_EQ(blocks_of_parts(config), (std::vector<int64_t>{7, 1}));
}

TEST(Stages, HaveFewerBlocksBesideAdaptersThatTakeLong) {
  TrainConfig config = config_of(8, 2);
  config.model.lora = {.rank = 256, .targets = {"layers.[01]..*"}};  // as much work as ten blocks each
  EXPECT_EQ(blocks_of_parts(config).front(), 1);
}

TEST(Stages, KnowHowUnequalTheyAre) {
  EXPECT_EQ(stage_imbalance(config_of(8, 1)), 1);
  TrainConfig config = config_of(8, 2);
  std::get<LlamaConfig>(config.model.value).vocab_size = 1;
  EXPECT_NEAR(stage_imbalance(config), 1, 0.01);
  config.parallel.pp_layers = {6, 2};
  EXPECT_NEAR(stage_imbalance(config), 1.5, 0.01);
  config.parallel = config_of(8, 2, 2).parallel;
  config.parallel.pp_layers = {3, 1, 1, 3};  // the first stage has the first and the third
  EXPECT_NEAR(stage_imbalance(config), 1, 0.01);
}

TEST(Stages, KeepWhatTheirWholeProgramNeedsOnceMoreMicroBatchesThanStagesAreUnderWay) {
  for (int64_t pp = 2; pp <= 12; ++pp)
    for (const int64_t micro_batches : {1, 2, 3, 5, 11, 23, 24, 25, 48, 49, 100}) {
      const TrainConfig config = config_of(12, pp);
      const PipelineShape shape = pipeline_shape(config.parallel, micro_batches);
      const std::vector<StageProgram> programs = pipeline_programs(shape, pipeline_table(shape));
      const std::vector<StagePart> parts = stage_parts(config, micro_batches);
      for (size_t stage = 0; stage < programs.size(); ++stage) {
        const StageSlots slots = stage_slots(programs[stage], 1);
        EXPECT_EQ(parts[stage].chunks[0].num_sets, slots.num_sets[0]) << pp << " " << micro_batches;
        EXPECT_EQ(parts[stage].num_gradients, slots.num_gradients) << pp << " " << micro_batches;
      }
    }
}

TEST(Stages, AreCutByHand) {
  TrainConfig config = config_of(8, 2);
  config.parallel.pp_layers = {2, 6};
  EXPECT_EQ(blocks_of_parts(config), (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(stage_part(config, 1, 4).chunks.front().begin, 2);
}

TEST(Stages, KeepBlocksTogetherThatReuseKeys) {
  MptConfig mpt;
  mpt.width = 32, mpt.layers = 4, mpt.heads = 4, mpt.vocab_size = 64, mpt.max_seq_len = 16;
  mpt.blocks.kinds = {{"again", {.reuse_kv = 1}}};
  mpt.blocks.order = {"default", "default", "again", "again"};
  TrainConfig config = config_of(4, 2);
  config.model.value = mpt;
  const DecoderSpec spec = decoder_spec(config.model);
  ASSERT_EQ(spec.block(3).kv_block, 1);
  EXPECT_EQ(blocks_of_parts(config), (std::vector<int64_t>{1, 3}));
  config.parallel.pp = 3;
  ASSERT_EQ(stage_problems(config).size(), 1U);
  EXPECT_EQ(stage_problems(config)[0].path, "parallel.pp");
  EXPECT_NE(stage_problems(config)[0].message.find("this model can be cut into 2"), std::string::npos);
  config.parallel.pp = 2, config.parallel.pp_layers = {2, 2};
  ASSERT_EQ(stage_problems(config).size(), 1U);
  EXPECT_EQ(stage_problems(config)[0].path, "parallel.pp_layers");
  config.parallel.pp_layers = {1, 3};
  EXPECT_TRUE(stage_problems(config).empty());
}

TEST(Stages, HaveEachUnitOnce) {
  for (const auto& [pp, chunks] : {std::pair<int64_t, int64_t>{2, 1}, {3, 1}, {2, 2}, {4, 2}})
    for (const bool tied : {false, true}) {
      TrainConfig config = config_of(9, pp, chunks);
      config.model.lora = {.rank = 2, .targets = {"layers.[1-7]..*"}};
      const std::vector<UnitSpec> whole = model_layout(config.model).units;
      ASSERT_EQ(whole.size(), 11U + 7U) << "embedding, blocks, head, adapters of seven blocks";
      std::vector<int> stages(whole.size());
      for (int64_t stage = 0; stage < pp; ++stage) {
        const StagePart part = stage_part(config, stage, 4);
        const std::vector<UnitSpec> own = stage_units(whole, part, tied);
        for (size_t u = 0; u < own.size(); ++u) {
          if (own[u].params.empty()) continue;
          EXPECT_EQ(own[u].numel(), whole[u].numel());
          const bool is_copy = own[u].params.front().part.has_value();
          stages[u] += is_copy ? 0 : 1;
          if (!is_copy) {
            EXPECT_EQ(stage_of_unit(config, static_cast<int64_t>(u)), stage);
          }
          EXPECT_EQ(is_copy, tied && u == 0 && stage + 1 == pp);
          const UnitLayout layout(own[u]);
          for (const Extent& extent : layout.extents())
            EXPECT_EQ(counted(extent).empty(), is_copy) << "a copy is not counted again";
        }
      }
      EXPECT_EQ(stages, std::vector<int>(whole.size(), 1));
    }
}

TEST(Stages, KeepActivationsOfMicroBatchesOnTheirWay) {
  TrainConfig config = config_of(8, 4);
  for (int64_t stage = 0; stage < 4; ++stage) {
    // Those on their way, and one that has arrived while another one goes back.
    EXPECT_EQ(stage_part(config, stage, 8).chunks.front().num_sets, std::min<int64_t>(4, 5 - stage));
    EXPECT_EQ(stage_part(config, stage, 1).chunks.front().num_sets, 1);
  }
  config.parallel.pp_schedule = PipelineSchedule::kGpipe;
  EXPECT_EQ(stage_part(config, 2, 8).chunks.front().num_sets, 8);
  const ActivationSpecs whole = activation_specs(config.model, {2, 16}, 4);
  const ActivationSpecs own = stage_activations(whole, stage_part(config, 2, 8));
  EXPECT_EQ(activation_bytes(own, {}, 4).kept, activation_bytes(whole, {}, 4).kept * 8 * 2 / 8);
  EXPECT_EQ(own.model.front().shape.front(), 8 * 3) << "before each block and after the last one";
}

/// No two passes of a chunk have one place at the same time.
TEST(Stages, GiveEveryPassAPlaceOfItsOwn) {
  using Kind = PipelineOp::Kind;
  for (const auto& [stages, chunks] : {std::pair{2, 1}, {4, 1}, {2, 2}, {3, 3}, {4, 2}})
    for (const int micro_batches : {1, 2, 5, 8}) {
      const PipelineShape shape = {chunks > 1 ? PipelineSchedule::kInterleaved : PipelineSchedule::k1f1b,
                                   stages, micro_batches, chunks};
      for (const StageProgram& program : pipeline_programs(shape, pipeline_table(shape))) {
        const StageSlots slots = stage_slots(program, chunks);
        std::map<std::pair<int, int64_t>, int> set_holder;
        for (size_t i = 0; i < program.size(); ++i) {
          const PipelineOp& op = program[i];
          const auto key = std::pair(op.chunk, slots.of_ops[i].set);
          if (op.kind == Kind::kReceiveActivation || op.kind == Kind::kForward) {
            const auto [holder, is_new] = set_holder.try_emplace(key, op.micro_batch);
            EXPECT_EQ(holder->second, op.micro_batch);
            EXPECT_LT(slots.of_ops[i].set, slots.num_sets[static_cast<size_t>(op.chunk)]);
          }
          if (op.kind == Kind::kBackward) {
            EXPECT_EQ(set_holder.at(key), op.micro_batch);
            set_holder.erase(key);
          }
          EXPECT_LT(slots.of_ops[i].gradient, slots.num_gradients);
        }
        EXPECT_TRUE(set_holder.empty());
      }
    }
}

/// A message reads its gradient while the stage computes.
TEST(Stages, KeepAGradientUntilTheNextOneIsSent) {
  using Kind = PipelineOp::Kind;
  for (const auto& [stages, chunks] : {std::pair{2, 1}, {4, 1}, {2, 2}, {3, 3}}) {
    const PipelineShape shape = {chunks > 1 ? PipelineSchedule::kInterleaved : PipelineSchedule::k1f1b,
                                 stages, 6, chunks};
    for (const StageProgram& program : pipeline_programs(shape, pipeline_table(shape))) {
      const StageSlots slots = stage_slots(program, chunks);
      int64_t on_its_way = -1;
      for (size_t i = 0; i < program.size(); ++i) {
        const int64_t place = slots.of_ops[i].gradient;
        if (program[i].kind == Kind::kSendGradient) {
          on_its_way = place;
        } else if (program[i].kind == Kind::kReceiveGradient || program[i].kind == Kind::kBackward) {
          EXPECT_NE(place, on_its_way) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tycho
