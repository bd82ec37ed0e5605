// What of each parameter ranks along tp have: every element once, and the shapes that a rank computes with.
#include "trainer/layout/tp_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "trainer/layout/decoder_layout.h"

namespace tycho {
namespace {

std::vector<ModelConfig> models() {
  LlamaConfig llama;
  llama.width = 48, llama.layers = 2, llama.heads = 12, llama.kv_heads = 2, llama.ffn_width = 37,
  llama.vocab_size = 101;
  llama.attention_bias = llama.ffn_bias = true;
  MptConfig mpt;
  mpt.width = 48, mpt.layers = 2, mpt.heads = 12, mpt.kv_heads = 3, mpt.vocab_size = 50, mpt.max_seq_len = 16;
  mpt.positions = PositionKind::kLearned, mpt.qk_gn = true;
  Gpt2Config gpt2;
  gpt2.width = 48, gpt2.layers = 2, gpt2.heads = 12, gpt2.vocab_size = 99, gpt2.max_seq_len = 16;
  return {{llama}, {mpt}, {gpt2}};
}

TEST(TpParts, HaveEveryElementOnceAndTheShapesThatARankComputesWith) {
  for (const ModelConfig& model : models())
    for (const int64_t size : {2, 3, 4, 6, 12}) {
      const DecoderSpec spec = decoder_spec(model);
      if (spec.attention.kv_heads % size != 0 && size % spec.attention.kv_heads != 0) continue;
      const ModelLayout whole = decoder_layout(spec);
      std::vector<std::vector<UnitSpec>> ranks;
      for (int64_t rank = 0; rank < size; ++rank) {
        ranks.push_back(tp_units(whole.units, {size, rank}));
        const ModelLayout wanted = decoder_layout(tp_spec(spec, {size, rank}));
        for (size_t u = 0; u < whole.units.size(); ++u)
          for (size_t i = 0; i < whole.units[u].params.size(); ++i)
            EXPECT_EQ(ranks.back()[u].params[i].shape, wanted.units[u].params[i].shape)
                << whole.units[u].params[i].name << " on rank " << rank << " of " << size;
      }
      for (size_t u = 0; u < whole.units.size(); ++u)
        for (size_t i = 0; i < whole.units[u].params.size(); ++i) {
          const int64_t elements = numel(whole.units[u].params[i].shape);
          std::vector<int> held(static_cast<size_t>(elements)), counts(static_cast<size_t>(elements));
          for (const std::vector<UnitSpec>& units : ranks) {
            const UnitLayout layout(units[u]);
            const Extent& extent = layout.extents()[i];
            const auto add = [&](int64_t first, int64_t count, std::vector<int>& to) {
              for_whole_runs(*extent.spec, first, count, [&](int64_t, int64_t j, int64_t n) {
                for (int64_t k = j; k < j + n; ++k) ++to[static_cast<size_t>(k)];
              });
            };
            add(0, extent.size(), held);
            for (const Extent& part : counted(extent)) {
              EXPECT_EQ(part.first, part.begin - extent.begin);
              add(part.first, part.size(), counts);
            }
          }
          EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), elements) << whole.units[u].params[i].name;
          EXPECT_GE(*std::min_element(held.begin(), held.end()), 1);
        }
    }
}

TEST(TpParts, OfTheMatrixThatGivesLogitsHaveZeroRowsOnAGpu) {
  for (const ModelConfig& model : models())
    for (const int64_t size : {1, 2, 3}) {
      const ModelLayout whole = model_layout(model);
      for (int64_t rank = 0; rank < size; ++rank) {
        const std::vector<UnitSpec> on_cpu = tp_units(whole.units, {size, rank}),
                                    on_gpu = tp_units(whole.units, {size, rank}, true);
        int64_t padded = 0;
        for (size_t u = 0; u < on_gpu.size(); ++u)
          for (size_t i = 0; i < on_gpu[u].params.size(); ++i) {
            const ParamSpec& param = on_gpu[u].params[i];
            EXPECT_EQ(on_cpu[u].params[i].room(), numel(param.shape));
            EXPECT_EQ(param.shape, on_cpu[u].params[i].shape) << "what is saved and updated does not change";
            const UnitLayout layout(on_gpu[u]);
            const FlatView& view = layout.views()[on_gpu[u].padded_view(i)];
            EXPECT_EQ(view.begin, layout.extents()[i].begin);
            if (!param.gives_logits) {
              EXPECT_EQ(view.shape, param.shape);
              continue;
            }
            ++padded;
            EXPECT_EQ(view.shape.front() % 64, 0);
            EXPECT_LT(view.shape.front() - param.shape.front(), 64);
            EXPECT_EQ(view.shape.front(), padded_rows(param.shape.front(), true));
          }
        EXPECT_EQ(padded, 1) << "the table of a tied model, the head of another";
      }
    }
}

TEST(TpParts, SpreadItemsEvenlyAndCopyWhatAreTooFew) {
  const auto sizes = [](int64_t count, int64_t tp) {
    std::vector<int64_t> all;
    for (int64_t rank = 0; rank < tp; ++rank) all.push_back(tp_items(count, {tp, rank}).size());
    return all;
  };
  EXPECT_EQ(sizes(8, 4), (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(sizes(10, 4), (std::vector<int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(sizes(2, 4), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(tp_items(2, {4, 3}).begin, 1);
  EXPECT_TRUE(tp_items(2, {4, 2}).counts);
  EXPECT_FALSE(tp_items(2, {4, 3}).counts);
  EXPECT_EQ(tp_items(2, {4, 3}).copies, 2);
}

TEST(TpParts, FindWhatLiesHereInTheWholeParameter) {
  ParamSpec param{.name = "qkv", .shape = {2, 12}, .tp = {.sections = {{4, 2}, {2, 2}}, .dim = 1}};
  const ParamSpec part = tp_part(param, {2, 1});
  EXPECT_EQ(part.shape, (Shape{2, 6}));
  EXPECT_EQ(part.whole_shape(), (Shape{2, 12}));
  std::vector<int64_t> there(12, -1);
  for_whole_runs(part, 0, 12, [&](int64_t i, int64_t j, int64_t n) {
    std::iota(there.begin() + i, there.begin() + i + n, j);
  });
  EXPECT_EQ(there, (std::vector<int64_t>{4, 5, 6, 7, 10, 11, 16, 17, 18, 19, 22, 23}));
  std::vector<int64_t> some;
  for_whole_runs(part, 3, 4, [&](int64_t i, int64_t j, int64_t n) {
    EXPECT_EQ(static_cast<size_t>(i), some.size());
    for (int64_t k = 0; k < n; ++k) some.push_back(j + k);
  });
  EXPECT_EQ(some, (std::vector<int64_t>{7, 10, 11, 16}));
  EXPECT_EQ(tp_part(part, {2, 0}).part->runs[1].there, 8) << "of another rank, from a part";
}

}  // namespace
}  // namespace tycho
