// LLM Foundry's ConcatTokens rules.
#include "trainer/data/prepare/token_packer.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

using PackedSamples = std::vector<std::vector<int32_t>>;

TEST(TokenPackerTest, FollowsLlmFoundrysRules) {
  const auto json = SortedJson::parse(read_file(testing::golden("tokenizer/encoded.json")));
  const auto tokenizer = load_tokenizer(testing::golden("tokenizer/whole.json"));
  for (const bool no_wrap : {false, true}) {
    PackedSamples samples;
    TokenPacker packer({.sample_tokens = 64, .eos = {0}, .no_wrap = no_wrap},
                       [&](auto sample) { samples.emplace_back(sample.begin(), sample.end()); });
    for (const auto& document : json["documents"])
      packer.add_document(tokenizer->encode(document.get<std::string>()));
    EXPECT_EQ(samples, json[no_wrap ? "no_wrap" : "wrap"].get<PackedSamples>());
    EXPECT_EQ(packer.num_samples(), static_cast<int64_t>(samples.size()));
    EXPECT_EQ(packer.dropped_tokens(), packer.num_tokens() - 64 * packer.num_samples());
  }
}

TEST(TokenPackerTest, PartsOfADocumentAreOneDocument) {
  PackedSamples whole, parts;
  const TokenPacker::Rules rules{.sample_tokens = 4, .bos = {8}, .eos = {9}};
  TokenPacker a(rules, [&](auto sample) { whole.emplace_back(sample.begin(), sample.end()); });
  TokenPacker b(rules, [&](auto sample) { parts.emplace_back(sample.begin(), sample.end()); });
  for (int document = 0; document < 5; ++document) {
    a.add_document(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7});
    b.add_part(std::vector<int32_t>{1, 2}, true, false);
    b.add_part({}, false, false);
    b.add_part(std::vector<int32_t>{3, 4, 5, 6, 7}, false, true);
  }
  a.finish();
  b.finish();
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(b.num_tokens(), 45);
}

TEST(TokenPackerTest, WithoutWrappingAPartLosesWhatItsSampleHasNoRoomFor) {
  PackedSamples samples;
  TokenPacker packer({.sample_tokens = 4, .bos = {8}, .eos = {9}, .no_wrap = true},
                     [&](auto sample) { samples.emplace_back(sample.begin(), sample.end()); });
  packer.add_part(std::vector<int32_t>{1, 2, 3, 4, 5}, true, true);  // 8 1 2 3 is emitted, 9 stays
  packer.add_part(std::vector<int32_t>{6}, true, true);              // 9 8 6 9: full, nothing drained it
  packer.add_part(std::vector<int32_t>{7}, true, false);             // 8 7 finds no room
  EXPECT_EQ(samples, (PackedSamples{{8, 1, 2, 3}, {9, 8, 6, 9}}));
  packer.add_document(std::vector<int32_t>{1, 2, 3, 4});
  packer.finish();
  EXPECT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples.back(), (std::vector<int32_t>{8, 1, 2, 3}));
}

}  // namespace
}  // namespace tycho
