// Sequences of their own in the rows of one decoder, against each of them alone.
#include "trainer/models/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/aten.h"
#include "tests/trainer/models/model_cases.h"
#include "trainer/base/error.h"
#include "trainer/models/decode_batch.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

class DecoderTest : public testing::TestWithParam<std::tuple<ModelCase, at::ScalarType>> {
 protected:
  void SetUp() override {
    at::manual_seed(3);
    config_ = std::get<0>(GetParam()).config;
    dtype_ = std::get<1>(GetParam());
    units_ = std::make_unique<LocalUnits>(model_layout(config_).units, dtype_, at::kCPU, UnitUse::kTrain);
    for (const OwnedRange& range : units_->owned()) initialise(range, 11);
    for (GatheredUnit& unit : units_->gathered())
      for (const Tensor& param : unit.params())
        if (param.dim() == 1 || unit.spec().adapts >= 0) param.add_(at::randn(param.sizes()).mul_(0.2));
  }
  Decoder decoder(int64_t batch) { return Decoder(config_, *units_, batch, kPositions, dtype_, at::kCPU); }
  std::vector<int32_t> tokens(int64_t count) const {
    const Tensor drawn = at::randint(decoder_spec(config_).vocab_size, {count}, at::kInt);
    return {drawn.data_ptr<int32_t>(), drawn.data_ptr<int32_t>() + count};
  }
  static Tensor tensor(const std::vector<int32_t>& tokens) { return at::tensor(tokens, at::kInt); }
  /// Logits after the first `prompt` tokens, and after each one that follows, of a sequence alone.
  std::vector<Tensor> alone(const std::vector<int32_t>& tokens, size_t prompt) {
    Decoder one = decoder(1);
    std::vector<Tensor> logits = {one.next_logits(tensor({tokens.begin(), tokens.begin() + prompt}))[0]};
    for (size_t i = prompt; i < tokens.size(); ++i) logits.push_back(one.next_logits(tensor({tokens[i]}))[0]);
    return logits;
  }

  static constexpr int64_t kPositions = 24;
  ModelConfig config_;
  at::ScalarType dtype_ = at::kFloat;
  std::unique_ptr<LocalUnits> units_;
};

// Eight sequences in five rows: they begin one after the other, are of different lengths, and end at
// different times; rows are used again. A row's logits have the bits of the sequence alone.
TEST_P(DecoderTest, EachRowHasTheLogitsOfItsSequenceAlone) {
  struct Sequence {
    std::vector<int32_t> tokens;
    size_t prompt, done;
    std::vector<Tensor> wanted;
  };
  std::vector<Sequence> sequences;
  for (const auto& [prompt, more] :
       {std::pair{1, 9}, {7, 4}, {12, 8}, {3, 1}, {2, 6}, {9, 5}, {1, 3}, {15, 9}}) {
    std::vector<int32_t> drawn = tokens(prompt + more);
    const std::vector<Tensor> wanted = alone(drawn, static_cast<size_t>(prompt));
    sequences.push_back({drawn, static_cast<size_t>(prompt), static_cast<size_t>(prompt), wanted});
  }
  Decoder rows = decoder(5);
  std::vector<int64_t> free = {3, 0, 4, 2, 1};
  std::map<int64_t, size_t> held;  // row: sequence
  size_t begun = 0, compared = 0;
  const auto compare = [&](size_t s, const Tensor& logits_V) {
    const Sequence& one = sequences[s];
    EXPECT_TRUE(at::equal(logits_V, one.wanted[one.done - one.prompt])) << s << " after " << one.done;
    ++compared;
  };
  while (begun < sequences.size() || !held.empty()) {
    if (begun < sequences.size() && !free.empty()) {
      const Sequence& one = sequences[begun];
      const Tensor logits =
          rows.begin_row(free.back(), tensor({one.tokens.begin(), one.tokens.begin() + one.prompt}));
      compare(begun, logits[0]);
      held[free.back()] = begun++;
      free.pop_back();
      if (begun % 2 == 0) continue;  // sometimes two begin before the others go on
    }
    std::vector<int64_t> going;
    std::vector<int32_t> next;
    for (const auto& [row, s] : held) {
      going.push_back(row);
      next.push_back(sequences[s].tokens[sequences[s].done++]);
    }
    const Tensor logits = rows.next_of_rows(going, tensor(next));
    ASSERT_EQ(logits.size(0), std::ssize(going));
    for (size_t i = 0; i < going.size(); ++i) {
      const Sequence& one = sequences[held.at(going[i])];
      compare(held.at(going[i]), logits[static_cast<int64_t>(i)]);
      EXPECT_EQ(rows.length(going[i]), static_cast<int64_t>(one.done));
      if (one.done < one.tokens.size()) continue;
      held.erase(going[i]);
      free.push_back(going[i]);
    }
  }
  EXPECT_EQ(compared, 8u + 9 + 4 + 8 + 1 + 6 + 5 + 3 + 9);
}

TEST_P(DecoderTest, RowsThatDoNotFitAreRefused) {
  Decoder rows = decoder(2);
  EXPECT_THROW(rows.begin_row(0, tensor(tokens(kPositions + 1))), Error);
  rows.begin_row(1, tensor(tokens(kPositions)));
  EXPECT_THROW(rows.next_of_rows({1}, tensor({0})), Error);
  EXPECT_THROW(rows.next_of_rows({0, 1}, tensor({0})), Error);
  EXPECT_THROW(rows.next_of_rows({}, tensor({0})), Error);
  EXPECT_ANY_THROW(rows.begin_row(2, tensor({0})));
}

/// The likeliest tokens after each prompt, up to a length of its own, and the passes that this took.
struct Grown {
  std::vector<std::vector<int32_t>> texts;
  int64_t passes = 0, decoders = 0, most_rows = 0;
};

TEST_P(DecoderTest, TextsThatGrowTogetherAreThoseThatGrowAlone) {
  if (dtype_ != at::kFloat) return;
  std::vector<TextToGrow> all;
  for (const auto& [prompt, more] : {std::pair{3, 12}, {1, 1}, {8, 5}, {2, 7}, {11, 13}, {1, 20}})
    all.push_back({tokens(prompt), more});
  const auto grow = [&](const std::vector<TextToGrow>& texts, int64_t most_positions) {
    Grown grown;
    grown.texts.resize(texts.size());
    const auto make = [&](int64_t batch, int64_t positions) {
      ++grown.decoders, grown.most_rows = batch;
      return std::make_unique<Decoder>(config_, *units_, batch, positions, dtype_, at::kCPU);
    };
    const auto next = [&](size_t i, const Tensor& logits_V) -> std::optional<int32_t> {
      grown.texts[i].push_back(logits_V.argmax().to(at::kInt).item<int32_t>());
      if (std::ssize(grown.texts[i]) == texts[i].max_tokens) return std::nullopt;
      return grown.texts[i].back();
    };
    DecodeBatch growing(config_, make, texts, next, most_positions);
    for (; !growing.done(); growing.pass()) ++grown.passes;
    growing.pass();  // of a rank whose texts are done
    EXPECT_TRUE(growing.done());
    return grown;
  };
  std::vector<std::vector<int32_t>> wanted;
  for (const TextToGrow& text : all) wanted.push_back(grow({text}, 8192).texts[0]);
  const bool by_room = std::ranges::any_of(decoder_spec(config_).positions.rotary,
                                           [](const RotarySpec& r) { return r.xpos_scale_base > 0; });
  const Grown together = grow(all, 8192), in_pairs = grow(all, 50), one_by_one = grow(all, 1);
  EXPECT_EQ(together.texts, wanted);
  EXPECT_EQ(in_pairs.texts, wanted);
  EXPECT_EQ(one_by_one.texts, wanted);
  EXPECT_EQ(together.most_rows, by_room ? 1 : 6);
  EXPECT_EQ(one_by_one.passes, 12 + 1 + 5 + 7 + 13 + 20);
  // Six prompts; then the longest decides.
  if (!by_room) {
    EXPECT_EQ(together.passes, 6 + 19);
    EXPECT_EQ(in_pairs.most_rows, 2);
    EXPECT_EQ(together.decoders, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DecoderTest,
                         testing::Combine(testing::ValuesIn(model_cases()),
                                          testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == at::kFloat ? "_fp32" : "_bf16");
                         });

}  // namespace
}  // namespace tycho
