// Logits of a text that keeps its beginning, against those of the whole text in one pass.
#include "trainer/eval/kept_text.h"

#include <c10/core/InferenceMode.h>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/eval/generate.h"
#include "trainer/run/trained_model.h"

namespace tycho {
namespace {

class KeptTextTest : public RunTest {
 protected:
  KeptTextTest() { write_data(40, 16, 64); }
  /// Compares with a decoder that sees all tokens at once.
  void expect_logits(const Tensor& logits_V, const std::vector<int32_t>& ids, AskedModel& asked) {
    const Tensor whole_V = logits_of(config_, asked.units, at::kCPU, ids).select(0, 0);
    EXPECT_LT((logits_V - whole_V).abs().max().item<float>(), 1e-4) << ids.size() << " tokens";
  }
  std::vector<int32_t> ids_of(int32_t count, int32_t seed) const {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < count; ++i)
      ids.push_back((i * 7 + seed) % static_cast<int32_t>(config_.model.vocab_size()));
    return ids;
  }
};

TEST_F(KeptTextTest, ComputesOnlyWhatIsNew) {
  LlamaConfig model = config_.model.as<LlamaConfig>();
  model.max_seq_len = 4096;
  config_.model.value = model;
  ASSERT_EQ(run(), 0);
  const c10::InferenceMode no_autograd;
  TrainedModel trained(TrainedSource(run_dir()), at::kCPU);
  AskedModel asked = trained.asked();
  KeptText text(trained.config(), asked.units, at::kCPU);

  std::vector<int32_t> ids = ids_of(9, 1);
  expect_logits(text.become(ids, 4, stop_).value(), ids, asked);
  EXPECT_EQ(text.num_reused(), 0);
  ids.push_back(3);
  expect_logits(text.add(3), ids, asked);

  // It goes on.
  ids.insert(ids.end(), {5, 2, 8});
  expect_logits(text.become(ids, 4, stop_).value(), ids, asked);
  EXPECT_EQ(text.num_reused(), 10);
  // Another continuation of its beginning.
  ids.resize(6);
  ids.insert(ids.end(), {1, 1, 4, 1});
  expect_logits(text.become(ids, 4, stop_).value(), ids, asked);
  EXPECT_EQ(text.num_reused(), 6);
  // Repeats the text: one token is computed for its logits.
  expect_logits(text.become(ids, 4, stop_).value(), ids, asked);
  EXPECT_EQ(text.num_reused(), 9);
  // More than one part, and more than the first cache has.
  ids = ids_of(1200, 1);
  expect_logits(text.become(ids, 4, stop_).value(), ids, asked);
  EXPECT_EQ(text.num_reused(), 0);
}

TEST_F(KeptTextTest, GoesOnAfterAStop) {
  ASSERT_EQ(run(), 0);
  const c10::InferenceMode no_autograd;
  TrainedModel trained(TrainedSource(run_dir()), at::kCPU);
  AskedModel asked = trained.asked();
  KeptText text(trained.config(), asked.units, at::kCPU);
  const std::vector<int32_t> ids = ids_of(5, 2);
  stop_ = 2;
  EXPECT_FALSE(text.become(ids, 1, stop_));
  stop_ = 0;
  expect_logits(text.become(ids, 1, stop_).value(), ids, asked);
}

}  // namespace
}  // namespace tycho
