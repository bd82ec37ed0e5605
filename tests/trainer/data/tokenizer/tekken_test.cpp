// Mistral's tekken.json: the ids that mistral-common gives, and what is refused by name.
#include "trainer/data/tokenizer/tekken.h"

#include <filesystem>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/tokenizer/hostile_texts.h"
#include "trainer/base/json.h"
#include "trainer/base/text/base64.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

std::string tekken(const std::string& name) { return golden("tekken/" + name + "/tekken.json"); }

/// With split_special_tokens beside it: mistral-common finds no special tokens in texts.
TEST(Tekken, EqualsMistralCommon) {
  const auto recorded = SortedJson::parse(read_file(golden("tekken/encoded.json")));
  for (const char* name : {"v3", "v11"}) {
    const auto tokenizer = load_tokenizer(tekken(name));
    const auto& wanted = recorded.at(name);
    ASSERT_EQ(tokenizer->size(), wanted["size"].get<int>()) << "num_vocab_tokens is larger";
    for (int32_t id = 0; id < tokenizer->size(); ++id)
      EXPECT_EQ(base64(tokenizer->token_bytes(id)),
                wanted["tokens"][static_cast<size_t>(id)].get<std::string>());
    for (size_t i = 0; i < wanted["texts"].size(); ++i) {
      const auto text = wanted["texts"][i].get<std::string>();
      const std::vector<int32_t> ids = tokenizer->encode(text);
      EXPECT_EQ(ids, wanted["ids"][i].get<std::vector<int32_t>>()) << wanted["texts"][i];
      EXPECT_EQ(tokenizer->decode(ids), text);
    }
    std::vector<int32_t> begin = tokenizer->text_begin();
    for (const int32_t id : tokenizer->encode("a")) begin.push_back(id);
    EXPECT_EQ(begin, wanted["begin"].get<std::vector<int32_t>>());
  }
}

TEST(Tekken, EqualsMistralCommonOnTenThousandHostileTexts) {
  const auto recorded = SortedJson::parse(read_file(golden("tekken/encoded.json")));
  for (const char* name : {"v3", "v11"}) {
    const auto tokenizer = load_tokenizer(tekken(name));
    testing::expect_digests(recorded.at(name).at("crc"), SortedJson::array(), *tokenizer,
                            [&](const std::vector<int32_t>& ids) { return tokenizer->decode(ids); });
  }
}

TEST(Tekken, SpecialTokensInTextsAreFoundAsInTheTokenizerJsonThatIsKept) {
  const TempDir dir;
  std::filesystem::copy_file(tekken("v11"), dir / "tekken.json");
  const auto tokenizer = load_tokenizer(dir / "tekken.json");
  EXPECT_EQ(tokenizer->encode("<s>[INST]</s>"), (std::vector<int32_t>{1, 3, 2}));
  EXPECT_EQ(tokenizer->encode("[THINK]<SPECIAL_999>"), (std::vector<int32_t>{20, 999}));
  EXPECT_TRUE(tokenizer->is_special(999));
  EXPECT_FALSE(tokenizer->is_special(1000));
  EXPECT_EQ(find_bos_token(*tokenizer), "<s>");
  EXPECT_EQ(find_eos_token(*tokenizer), "</s>");
  EXPECT_EQ(tokenizer->info().format, "tokenizer.json");
  const auto kept = tokenizer_from_text(read_tokenizer_file(dir / "tekken.json"), "kept");
  EXPECT_EQ(kept->encode("<s>it's 3.14"), tokenizer->encode("<s>it's 3.14"));
  std::filesystem::rename(dir / "tekken.json", dir / "tekken_240911.json");
  EXPECT_EQ(load_tokenizer(dir / "tekken_240911.json")->encode("<s>"), (std::vector<int32_t>{1}));
}

TEST(Tekken, WhatMistralCommonRefusesIsRefusedByName) {
  const Json good = parse_json(read_file(tekken("v11")), "golden");
  struct Case {
    const char *pointer, *value, *words;
  };
  const Case cases[] = {
      {"/config/version", "\"v99\"", "got \"v99\""},
      {"/config/version", "null", "\"version\" of config must be a string"},
      {"/config/pattern", "3", "\"pattern\" of config must be a string"},
      {"/config/pattern", "\"(a\"", "a"},
      {"/config/default_vocab_size", "1701", "expected 256 to 700 tokens beside the special ones"},
      {"/config/default_vocab_size", "1255", "(default_vocab_size), got 255"},
      {"/config/default_vocab_size", "-1", "must be a whole number"},
      {"/config/default_num_special_tokens", "20", "expected at most 20 special tokens"},
      {"/special_tokens", "null", "a file of version v11 has no \"special_tokens\""},
      {"/special_tokens", "{}", "\"special_tokens\" must be a list"},
      {"/special_tokens/3/rank", "4", "expected a special token with rank 3, got rank 4"},
      {"/special_tokens/3/token_str", "\"<s>\"", "the tokens 1 and 3 are both \"<s>\""},
      {"/special_tokens/3/token_str", "\"\"", "the special token 3 is empty"},
      {"/special_tokens/3/token_str", "\"a\"", "the tokens 3 and 1097 are both \"a\""},
      {"/special_tokens/3/token_str", "\"<SPECIAL_21>\"", "the tokens 3 and 21 are both \"<SPECIAL_21>\""},
      {"/vocab", "{}", "\"vocab\" must be a list"},
      {"/vocab/300/rank", "301", "expected a token with rank 300, got rank 301"},
      {"/vocab/65/token_bytes", "\"Qg==\"", "expected the byte 0x41 as the token of rank 65"},
      {"/vocab/300/token_bytes", "\"Qg\"", "the token_bytes of rank 300 are not base64"},
      {"/vocab/300/token_bytes", "\"\"", "the token_bytes of rank 300 are not base64"},
      {"/vocab/300/token_bytes", "\"Qg==\"", "the token of rank 300 is that of rank 66, too"},
  };
  const TempDir dir;
  const std::string path = dir / "tekken.json";
  for (const Case& one : cases) {
    Json bad = good;
    bad[Json::json_pointer(one.pointer)] = parse_json(one.value, "case");
    write_text(path, bad.dump());
    const std::string place = "[tokenizer] " + path;
    expect_error(ExitCode::kUnusable, {place, one.words}, [&] { load_tokenizer(path); });
  }
  for (const char* key : {"config", "vocab"}) {
    Json bad = good;
    bad.erase(key);
    write_text(path, bad.dump());
    const std::string words = std::string("the file has no \"") + key + "\"";
    expect_error(ExitCode::kUnusable, {words}, [&] { load_tokenizer(path); });
  }
}

}  // namespace
}  // namespace tycho
