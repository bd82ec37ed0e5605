// Blocks of rows say where every element of a part is in the whole parameter.
#include "trainer/optim/row_blocks.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/layout/unit_shards.h"

namespace tycho {
namespace {

/// The index of every element of a unit in its whole parameter.
Tensor whole_indices(const UnitLayout& layout) {
  Tensor flat = at::empty({layout.numel()}, at::kLong);
  for (const Extent& e : layout.extents())
    for_whole_runs(*e.spec, 0, e.size(), [&](int64_t i, int64_t j, int64_t n) {
      flat.narrow(0, e.begin + i, n).copy_(at::arange(j, j + n));
    });
  return flat;
}

void expect_places(const std::vector<UnitSpec>& units, int64_t num_shards, const std::string& what) {
  for (const UnitSpec& spec : units) {
    const UnitLayout layout(spec);
    const Tensor flat = whole_indices(layout);
    for (int64_t rank = 0; rank < num_shards; ++rank) {
      const ShardRange range = shard_range(layout.numel(), num_shards, rank);
      const Tensor mine = flat.narrow(0, range.begin, range.size());
      for (const Extent& extent : layout.extents_in(range.begin, range.end)) {
        const int64_t rows = num_rows(*extent.spec), all = numel(extent.spec->whole_shape());
        const Tensor whole_RC = at::arange(all).view({rows, all / rows});
        int64_t elements = 0;
        for (const RowBlock& block : row_blocks(extent)) {
          EXPECT_TRUE(at::equal(in_buffer(mine, block), in_whole(whole_RC, block)))
              << what << " " << extent.spec->name << " shard " << rank;
          elements += block.rows * block.width;
        }
        EXPECT_EQ(elements, extent.size()) << what << " " << extent.spec->name;
      }
    }
  }
}

TEST(RowBlocks, SayWhereEachElementIsInTheWholeParameter) {
  LlamaConfig llama;
  llama.width = 36, llama.heads = 6, llama.kv_heads = 3, llama.ffn_width = 37, llama.layers = 1,
  llama.vocab_size = 67;
  Gpt2Config gpt2;  // queries, keys and values are columns of one matrix
  gpt2.width = 24, gpt2.layers = 1, gpt2.heads = 6, gpt2.vocab_size = 65, gpt2.max_seq_len = 16;
  for (const ModelConfig& model : {ModelConfig{llama}, ModelConfig{gpt2}})
    for (const int64_t tp : {1, 2, 3, 6})
      for (int64_t rank = 0; rank < tp; ++rank)
        for (const int64_t shards : {1, 2, 3, 7})
          expect_places(tp_units(model_layout(model).units, {tp, rank}), shards,
                        fmt::format("{} rank {} of {}, {} shards", model.kind(), rank, tp, shards));
}

}  // namespace
}  // namespace tycho
