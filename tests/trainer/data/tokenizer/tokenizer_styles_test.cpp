// Tokenizers of every style that is read, against Hugging Face.
#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/tokenizer/hostile_texts.h"
#include "trainer/base/json.h"
#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/decode_stream.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

using testing::golden;

/// Every style against the library, whose answers tests/golden/tokenizer_styles.py recorded.
class StyleTest : public ::testing::TestWithParam<const char*> {};

TEST_P(StyleTest, EqualsHuggingFace) {
  const auto golden_texts = SortedJson::parse(read_file(golden("tokenizer_styles/encoded.json")));
  const auto tokenizer = load_tokenizer(golden(std::string("tokenizer_styles/") + GetParam() + ".json"));
  const auto& wanted = golden_texts[GetParam()];
  for (size_t i = 0; i < golden_texts["texts"].size(); ++i) {
    const auto text = golden_texts["texts"][i].get<std::string>();
    const auto ids = tokenizer->encode(text);
    EXPECT_EQ(ids, wanted["ids"][i].get<std::vector<int32_t>>()) << golden_texts["texts"][i];
    DecodeStream stream(*tokenizer);
    std::string decoded;
    for (const int32_t id : ids) decoded += stream.add(id);
    EXPECT_EQ(decoded + stream.finish(), wanted["texts"][i].get<std::string>()) << golden_texts["texts"][i];
  }
  std::vector<int32_t> added = tokenizer->text_begin();
  for (const int32_t id : tokenizer->encode("a")) added.push_back(id);
  for (const int32_t id : tokenizer->text_end()) added.push_back(id);
  EXPECT_EQ(added, wanted["added"].get<std::vector<int32_t>>());
}

TEST_P(StyleTest, EqualsHuggingFaceOnTenThousandHostileTexts) {
  const std::string name = std::string(GetParam()) + ".json";
  const auto tokenizer = load_tokenizer(golden("tokenizer_styles/" + name));
  testing::expect_recorded_digests(name, *tokenizer, [&](const std::vector<int32_t>& ids) {
    DecodeStream stream(*tokenizer);
    std::string text;
    for (const int32_t id : ids) {
      std::string part = stream.add(id);
      text += part;
      std::erase(part, '\0');
      EXPECT_EQ(find_not_text(part), std::string::npos) << part;
    }
    return text + stream.finish();
  });
}

INSTANTIATE_TEST_SUITE_P(Files, StyleTest,
                         ::testing::Values("gpt2", "gpt2_prefix", "neox", "llama3", "qwen2", "smollm",
                                           "gpt4o", "deepseek", "falcon", "nfkc", "odd", "invert", "llama2",
                                           "llama2_first", "metaspace", "metaspace_never"));

}  // namespace
}  // namespace tycho
