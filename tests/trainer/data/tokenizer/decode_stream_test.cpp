// Text that comes out token by token.
#include "trainer/data/tokenizer/decode_stream.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

using testing::golden;

std::string decoded(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, DecodeOptions options = {}) {
  DecodeStream stream(tokenizer, options);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = stream.add(id);
    EXPECT_EQ(find_not_text(piece), std::string::npos) << "every piece is whole characters";
    text += piece;
  }
  return text + stream.finish();
}

TEST(DecodeStreamTest, HoldsBackCharactersThatAreNotComplete) {
  const auto tokenizer = load_tokenizer(golden("tokenizer_styles/gpt2.json"));
  std::vector<int32_t> bytes;
  for (const char c : std::string("é🙂"))
    for (int32_t id = 0; id < tokenizer->size(); ++id)
      if (tokenizer->token_bytes(id) == std::string(1, c)) bytes.push_back(id);
  ASSERT_EQ(bytes.size(), 6u);
  DecodeStream stream(*tokenizer);
  std::vector<std::string> pieces;
  for (const int32_t id : bytes) pieces.push_back(stream.add(id));
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "é", "", "", "", "🙂"}));
  EXPECT_EQ(stream.finish(), "");
  bytes.pop_back();
  EXPECT_EQ(decoded(*tokenizer, bytes), "é\uFFFD") << "one for the sequence that breaks off";
}

TEST(DecodeStreamTest, LeavesOutTheSpaceBeforeATextButNotInsideOne) {
  const auto tokenizer = load_tokenizer(golden("tokenizer_styles/llama2.json"));
  const auto ids = tokenizer->encode("the rate");
  EXPECT_EQ(decoded(*tokenizer, ids), "the rate");
  EXPECT_EQ(decoded(*tokenizer, ids, {.continues = true}), " the rate");
  EXPECT_EQ(tokenizer->decode(ids), "the rate");
}

TEST(DecodeStreamTest, LeavesSpecialTokensOutWhenAsked) {
  const auto tokenizer = load_tokenizer(golden("tokenizer_styles/llama2.json"));
  std::vector<int32_t> ids = tokenizer->text_begin();
  for (const int32_t id : tokenizer->encode("the rate")) ids.push_back(id);
  EXPECT_EQ(decoded(*tokenizer, ids, {.skip_special = true}), "the rate");
  EXPECT_EQ(decoded(*tokenizer, ids), "<s> the rate");
}

}  // namespace
}  // namespace tycho
