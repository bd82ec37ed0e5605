// Encoding and decoding, against Hugging Face.
#include "trainer/data/tokenizer/tokenizer.h"

#include <thread>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/normal_form.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

const SortedJson& encoded() {
  static const auto json = SortedJson::parse(read_file(golden("tokenizer/encoded.json")));
  return json;
}

class GoldenTokenizerTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Tokenizer> tokenizer_ =
      load_tokenizer(golden(std::string("tokenizer/") + GetParam() + ".json"));
};

TEST_P(GoldenTokenizerTest, EncodesAsHuggingFaceDoes) {
  const auto& texts = encoded()["texts"];
  for (int round = 0; round < 2; ++round)  // the second from the cache
    for (size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(tokenizer_->encode(texts[i].get<std::string>()),
                encoded()[GetParam()][i].get<std::vector<int32_t>>())
          << texts[i];
}

TEST_P(GoldenTokenizerTest, DecodesToTheText) {
  for (const auto& text : encoded()["texts"]) {
    if (text.get<std::string>().find("<tool>") != std::string::npos) continue;  // takes spaces along
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text.get<std::string>())), text.get<std::string>());
  }
  const std::string bytes = "\xff\xc3 \x80";
  EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(bytes)), bytes);
}

TEST_P(GoldenTokenizerTest, ThreadsGetTheSameIds) {
  const std::string text = read_file(golden("tokenizer/corpus.txt"));
  const auto expected = tokenizer_->encode(text);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) equal[i] += tokenizer_->encode(text) == expected;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 5));
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTokenizerTest, ::testing::Values("lines", "whole", "llama3"));

TEST(TokenizerTest, KnowsItsTokens) {
  const auto tokenizer = load_tokenizer(golden("tokenizer/lines.json"));
  EXPECT_EQ(tokenizer->size(), 494);
  EXPECT_EQ(tokenizer->find("<|endoftext|>"), 0);
  EXPECT_TRUE(tokenizer->is_special(0));
  EXPECT_FALSE(tokenizer->is_special(1));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_FALSE(tokenizer->is_special(500));
  EXPECT_EQ(tokenizer->find("Ġ"), tokenizer->encode(" ").at(0));
  EXPECT_EQ(tokenizer->find("not a token"), -1);
  EXPECT_EQ(tokenizer->token_bytes(tokenizer->find("Ġ")), " ");
  EXPECT_EQ(tokenizer->token_bytes(0), "<|endoftext|>");
  EXPECT_EQ(tokenizer->hash().size(), 32u);
  EXPECT_TRUE(tokenizer->splits_at_words());
  EXPECT_THROW(tokenizer->token_bytes(500), Error);
  EXPECT_THROW(tokenizer->decode({-1}), Error);
}

TEST(TokenizerTest, LongPiecesTakeTheSameMergesAsShortOnes) {
  // Every piece length around the limits of the cache and of the scan, against the rule applied naively.
  const auto json = SortedJson::parse(read_file(golden("tokenizer/lines.json")));
  const auto tokenizer = load_tokenizer(golden("tokenizer/lines.json"));
  for (size_t length = 1; length < 140; ++length) {
    std::string text;
    while (text.size() < length) text += "learningtensorshard";
    text.resize(length);
    std::vector<std::string> parts;
    for (const char c : text) parts.emplace_back(1, c);
    for (const auto& merge : json["model"]["merges"])
      for (size_t i = 0; i + 1 < parts.size(); ++i)
        if (parts[i] == merge[0] && parts[i + 1] == merge[1]) {
          parts[i] += parts[i + 1];
          parts.erase(parts.begin() + static_cast<ptrdiff_t>(i) + 1);
        }
    std::vector<int32_t> expected;
    for (const auto& part : parts) expected.push_back(tokenizer->find(part));
    ASSERT_EQ(tokenizer->encode(text), expected) << text;
  }
}

class TokenizerFileTest : public ::testing::Test {
 protected:
  /// Loads lines.json, or another, after `change` was applied to it.
  template <class Change>
  std::unique_ptr<Tokenizer> load(Change change, const char* name = "lines") {
    auto json = SortedJson::parse(read_file(golden(std::string("tokenizer/") + name + ".json")));
    change(json);
    const std::string path = dir_ / "tokenizer.json";
    write_text(path, json.dump());
    return load_tokenizer(path);
  }
  TempDir dir_;
};

TEST_F(TokenizerFileTest, NormalisesAsHuggingFaceDoes) {
  using Json = SortedJson;
  const Json golden_forms = Json::parse(read_file(golden("tokenizer/normalizers.json")));
  const auto& texts = golden_forms["texts"];
  for (const auto& [name, form] : {std::pair("NFC", NormalForm::kNfc),
                                   {"NFD", NormalForm::kNfd},
                                   {"NFKC", NormalForm::kNfkc},
                                   {"NFKD", NormalForm::kNfkd}}) {
    for (const Json& normalizer :
         {Json{{"type", name}}, Json{{"type", "Sequence"}, {"normalizers", {{{"type", name}}}}}}) {
      const auto tokenizer = load(
          [&](Json& json) {
            json["normalizer"] = normalizer;
            json["added_tokens"].push_back({{"id", 420}, {"content", "<e\u0301>"}, {"normalized", true}});
          },
          "whole");
      for (size_t i = 0; i < texts.size(); ++i)
        EXPECT_EQ(tokenizer->encode(texts[i].get<std::string>()),
                  golden_forms[name]["ids"][i].get<std::vector<int32_t>>())
            << name << " " << texts[i];
    }
    for (size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(normalized(form, texts[i].get<std::string>()),
                golden_forms[name]["normal"][i].get<std::string>())
          << name << " " << texts[i];
  }
}

TEST_F(TokenizerFileTest, KeepsInvalidUtf8Unchanged) {
  EXPECT_EQ(normalized(NormalForm::kNfc,
                       "\xff"
                       "e\xcc\x81\xc3"),
            "\xff\xc3\xa9\xc3");
  const auto tokenizer = load([](SortedJson& json) { json["normalizer"] = {{"type", "NFC"}}; });
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xff"
                                                "e\xcc\x81")),
            "a\xff\xc3\xa9");
}

TEST_F(TokenizerFileTest, ReadsMergesAsStringsToo) {
  const auto tokenizer = load([](SortedJson& json) {
    for (auto& merge : json["model"]["merges"])
      merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  });
  EXPECT_EQ(tokenizer->encode("learning rate"),
            load_tokenizer(golden("tokenizer/lines.json"))->encode("learning rate"));
}

TEST_F(TokenizerFileTest, AddsThePrefixSpace) {
  const auto plain = load([](SortedJson&) {});
  const auto prefixed = load([](SortedJson& json) { json["pre_tokenizer"]["add_prefix_space"] = true; });
  EXPECT_EQ(prefixed->encode("rate"), plain->encode(" rate"));
  EXPECT_EQ(prefixed->encode(" rate"), plain->encode(" rate"));
  EXPECT_FALSE(prefixed->splits_at_words());
}

TEST_F(TokenizerFileTest, NamesWhatIsNotSupported) {
  const auto refuses = [&](std::string_view name, auto change) {
    expect_error(ExitCode::kUnusable, {"tokenizer.json", name, "not supported"}, [&] { load(change); });
  };
  using Json = SortedJson;
  refuses("normalizer Lowercase", [](Json& json) { json["normalizer"] = {{"type", "Lowercase"}}; });
  refuses("normalizer Sequence inside", [](Json& json) {
    const Json inner = {{"type", "Sequence"}, {"normalizers", Json::array()}};
    json["normalizer"] = {{"type", "Sequence"}, {"normalizers", {inner}}};
  });
  refuses("WordPiece", [](Json& json) { json["model"]["type"] = "WordPiece"; });
  refuses("dropout", [](Json& json) { json["model"]["dropout"] = 0.1; });
  refuses("byte_fallback", [](Json& json) { json["model"]["byte_fallback"] = true; });
  refuses("end_of_word_suffix", [](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; });
  refuses("Metaspace", [](Json& json) { json["pre_tokenizer"] = {{"type", "Metaspace"}}; });
  refuses("decoder BPEDecoder", [](Json& json) { json["decoder"] = {{"type", "BPEDecoder"}}; });
  refuses("single_word", [](Json& json) { json["added_tokens"][0]["single_word"] = true; });
  refuses("byte 0x21", [](Json& json) { json["model"]["vocab"].erase("!"); });
  refuses("\\d+", [](Json& json) {
    json["pre_tokenizer"] = {{"type", "Sequence"},
                             {"pretokenizers", {{{"type", "Split"}, {"pattern", {{"Regex", "\\d+"}}}}}}};
  });
}

TEST_F(TokenizerFileTest, NamesWhatIsMalformed) {
  const auto refuses = [&](std::initializer_list<std::string_view> parts, auto change) {
    expect_error(ExitCode::kUnusable, parts, [&] { load(change); });
  };
  using Json = SortedJson;
  refuses({"\"model\""}, [](Json& json) { json.erase("model"); });
  refuses({"\"vocab\""}, [](Json& json) { json["model"]["vocab"] = 3; });
  refuses({"two tokens have the id 1"}, [](Json& json) { json["model"]["vocab"]["zzz"] = 1; });
  refuses({"whole number", "zzz"}, [](Json& json) { json["model"]["vocab"]["zzz"] = -1; });
  refuses({"whole number", "zzz"}, [](Json& json) { json["model"]["vocab"]["zzz"] = 1 << 30; });
  refuses({"merge 0"}, [](Json& json) { json["model"]["merges"][0] = "abc"; });
  refuses({"merge 1", "no such"}, [](Json& json) { json["model"]["merges"][1] = {"no such", "a"}; });
  refuses({"added token", "the id 7"}, [](Json& json) { json["added_tokens"][0]["id"] = 7; });
  expect_error(ExitCode::kUnusable, {"cannot read", "/none.json"},
               [&] { load_tokenizer(dir_ / "none.json"); });
  write_text(dir_ / "text.json", "not json");
  expect_error(ExitCode::kUnusable, {"text.json", "not valid JSON at byte 2 of 8"},
               [&] { load_tokenizer(dir_ / "text.json"); });
}

TEST_F(TokenizerFileTest, IsTheSameFromTheText) {
  const std::string path = golden("tokenizer/lines.json");
  const auto from_file = load_tokenizer(path), from_text = tokenizer_from_text(read_file(path), "here");
  EXPECT_EQ(from_text->hash(), from_file->hash());
  EXPECT_EQ(from_text->encode("learning rate"), from_file->encode("learning rate"));
  expect_error(ExitCode::kUnusable, {"here", "not valid JSON at byte 2 of 8"},
               [] { tokenizer_from_text("not json", "here"); });
}

TEST_F(TokenizerFileTest, SurvivesDamagedFiles) {
  const std::string good = read_file(golden("tokenizer/llama3.json"));
  const std::string path = dir_ / "tokenizer.json", pool = "{}[]\",:0-9anull\\\xff";
  uint32_t state = 7;
  const auto random = [&](size_t below) { return ((state = state * 1664525 + 1013904223) >> 8) % below; };
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    for (size_t edits = 1 + random(4); edits > 0; --edits) {
      const size_t at = random(bad.size());
      switch (random(3)) {
        case 0: bad[at] = pool[random(pool.size())]; break;
        case 1: bad.erase(at, random(200)); break;
        case 2: bad.insert(at, bad.substr(random(bad.size()), random(200))); break;
      }
    }
    write_text(path, bad);
    try {
      const auto tokenizer = load_tokenizer(path);
      tokenizer->decode(tokenizer->encode("learning rate <|endoftext|> 学习"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
    }
  }
}

}  // namespace
}  // namespace tycho
