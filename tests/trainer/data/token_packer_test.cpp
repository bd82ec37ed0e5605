// LLM Foundry's ConcatTokens rules.
#include "trainer/data/token_packer.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer.h"

namespace tycho {
namespace {

using Samples = std::vector<std::vector<int32_t>>;

TEST(TokenPackerTest, FollowsLlmFoundrysRules) {
  const auto json = SortedJson::parse(read_file(testing::golden("tokenizer/encoded.json")));
  const auto tokenizer = load_tokenizer(testing::golden("tokenizer/whole.json"));
  for (const bool no_wrap : {false, true}) {
    Samples samples;
    TokenPacker packer({.sample_tokens = 64, .eos = {0}, .no_wrap = no_wrap},
                       [&](auto sample) { samples.emplace_back(sample.begin(), sample.end()); });
    for (const auto& document : json["documents"])
      packer.add(tokenizer->encode(document.get<std::string>()), true, true);
    EXPECT_EQ(samples, json[no_wrap ? "no_wrap" : "wrap"].get<Samples>());
    EXPECT_EQ(packer.num_samples(), static_cast<int64_t>(samples.size()));
    EXPECT_EQ(packer.dropped_tokens(), packer.num_tokens() - 64 * packer.num_samples());
  }
}

TEST(TokenPackerTest, PartsOfADocumentAreOneDocument) {
  for (const bool no_wrap : {false, true}) {
    Samples whole, parts;
    const TokenPacker::Rules rules{.sample_tokens = 4, .bos = {8}, .eos = {9}, .no_wrap = no_wrap};
    TokenPacker a(rules, [&](auto sample) { whole.emplace_back(sample.begin(), sample.end()); });
    TokenPacker b(rules, [&](auto sample) { parts.emplace_back(sample.begin(), sample.end()); });
    for (int document = 0; document < 5; ++document) {
      a.add({1, 2, 3, 4, 5, 6, 7}, true, true);
      b.add({1, 2}, true, false);
      b.add({}, false, false);
      b.add({3, 4, 5, 6, 7}, false, true);
    }
    EXPECT_EQ(parts, whole);
    EXPECT_EQ(b.num_tokens(), 45);
  }
}

}  // namespace
}  // namespace tycho
