// Encoding and decoding, against Hugging Face.
#include "trainer/data/tokenizer/tokenizer.h"

#include <thread>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/decode_stream.h"
#include "trainer/data/tokenizer/patterns/normal_form.h"

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
  const auto with_steps = [](Json& json, std::initializer_list<Json> steps) {
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", Json(steps)}};
  };
  const Json bytes = {{"type", "ByteLevel"}};
  refuses("normalizer Nmt", [](Json& json) { json["normalizer"] = {{"type", "Nmt"}}; });
  refuses("normalizer Precompiled", [](Json& json) { json["normalizer"] = {{"type", "Precompiled"}}; });
  refuses("WordPiece", [](Json& json) { json["model"]["type"] = "WordPiece"; });
  refuses("Unigram", [](Json& json) { json["model"]["type"] = "Unigram"; });
  refuses("dropout", [](Json& json) { json["model"]["dropout"] = 0.1; });
  refuses("byte_fallback", [](Json& json) { json["model"]["byte_fallback"] = true; });
  refuses("end_of_word_suffix", [](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; });
  refuses("continuing_subword_prefix", [](Json& json) { json["model"]["continuing_subword_prefix"] = "##"; });
  refuses("BertPreTokenizer", [](Json& json) { json["pre_tokenizer"] = {{"type", "BertPreTokenizer"}}; });
  refuses("UnicodeScripts", [&](Json& json) { with_steps(json, {Json{{"type", "UnicodeScripts"}}, bytes}); });
  refuses("second pre_tokenizer ByteLevel", [&](Json& json) { with_steps(json, {bytes, bytes}); });
  refuses("decoder WordPiece", [](Json& json) { json["decoder"] = {{"type", "WordPiece"}}; });
  refuses("without decoder ByteLevel", [](Json& json) { json["decoder"] = {{"type", "ByteFallback"}}; });
  refuses("without a decoder", [](Json& json) { json["decoder"] = nullptr; });
  refuses("post_processor Foo", [](Json& json) { json["post_processor"] = {{"type", "Foo"}}; });
  refuses("byte 0x21", [](Json& json) { json["model"]["vocab"].erase("!"); });
  for (const auto& [pattern, what] : {std::pair("(?<=a)b", "\"(?<=\""),
                                      {"\\p{Han}", "\\p{Han}"},
                                      {"\\bx", "\\b"},
                                      {"[a&&b]", "&&"},
                                      {"(?i:ss)", "ss"}}) {
    refuses(what, [&](Json& json) {
      with_steps(json, {Json{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}},
                        bytes});
    });
  }
}

TEST_F(TokenizerFileTest, NamesWhatIsMalformed) {
  const auto refuses = [&](std::initializer_list<std::string_view> parts, auto change) {
    expect_error(ExitCode::kUnusable, parts, [&] { load(change); });
  };
  using Json = SortedJson;
  const auto nested = [](int depth) {
    Json json = {{"type", "NFC"}};
    for (int i = 0; i < depth; ++i) json = {{"type", "Sequence"}, {"normalizers", {json}}};
    return json;
  };
  refuses({"nested more than 8 deep"}, [&](Json& json) { json["normalizer"] = nested(10); });
  refuses({"nested more than 64 deep at byte"}, [&](Json& json) { json["normalizer"] = nested(100); });
  refuses({"too large for"}, [](Json& json) { json["model"]["vocab"]["zzz"] = 16'000'000; });
  refuses({"unk_token", "no such"}, [](Json& json) { json["model"]["unk_token"] = "no such"; });
  refuses({"100001 added tokens", "100000"}, [](Json& json) {
    for (int i = 0; i < 100'000; ++i)
      json["added_tokens"].push_back({{"id", 1000 + i}, {"content", std::to_string(i) + "~"}});
  });
  std::string million = "{\"added_tokens\": [{}";
  for (int i = 0; i < 1'000'000; ++i) million += fmt::format(", {{\"id\": {}, \"content\": \"~{}\"}}", i, i);
  expect_error(ExitCode::kUnusable, {"here", "more than 110000 objects", "at most 100000 added tokens"},
               [&] { tokenizer_from_text(million + "]}", "here"); });
  for (const char* pattern :
       {"(", "a)", "[a", "*", "a{2000}", "(?", "\\p{L", "[z-a]", "((((a{99}){99}){99}){99})"}) {
    refuses({"regex"}, [&](Json& json) {
      json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", ""}};
    });
  }
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

/// What tokenizers 0.23.3 does with merges of tokens that later ones make, of each other's, and twice the
/// same. A merge makes a longer token, so they end.
TEST_F(TokenizerFileTest, MergesThatReferToEachOther) {
  using Tokens = std::vector<std::string>;
  struct Case {
    Tokens words;
    std::vector<std::pair<std::string, std::string>> merges;
    std::vector<std::pair<std::string, Tokens>> encoded;
  };
  const std::vector<Case> cases = {
      {{"ab", "abc"}, {{"ab", "c"}, {"a", "b"}}, {{"abc", {"abc"}}, {"bababa", {"b", "ab", "ab", "a"}}}},
      {{"ab", "ba", "aba", "bab"},
       {{"ab", "a"}, {"ba", "b"}, {"b", "a"}, {"a", "b"}},
       {{"abc", {"ab", "c"}}, {"ababab", {"a", "bab", "ab"}}, {"bababa", {"bab", "a", "ba"}}}},
      {{"ab", "bc"}, {{"a", "b"}, {"b", "c"}, {"a", "b"}}, {{"abc", {"a", "bc"}}}},
      {{"aa", "aaa", "aaaa"},
       {{"aa", "a"}, {"a", "aa"}, {"aa", "aa"}, {"a", "a"}},
       {{"aaaaaaa", {"aaa", "aaa", "a"}}}}};
  const auto begins_character = [](char c) { return (c & 0xC0) != 0x80; };
  for (const Case& one : cases) {
    const auto tokenizer = load([&](SortedJson& json) {
      SortedJson vocab = SortedJson::object();
      for (const auto& [spelling, id] : json["model"]["vocab"].items())
        if (std::ranges::count_if(spelling, begins_character) == 1) vocab[spelling] = vocab.size();
      for (const std::string& word : one.words) vocab[word] = vocab.size();
      json["model"]["vocab"] = vocab;
      json["model"]["merges"] = one.merges;
      json["added_tokens"] = SortedJson::array();
      json["post_processor"] = nullptr;
    });
    for (const auto& [text, tokens] : one.encoded) {
      std::vector<int32_t> wanted;
      for (const std::string& token : tokens) wanted.push_back(tokenizer->find(token));
      EXPECT_EQ(tokenizer->encode(text), wanted) << text;
    }
  }
  expect_error(ExitCode::kUnusable, {"merge 0 needs token \"arar\", which the vocabulary lacks"}, [&] {
    load([](SortedJson& json) { json["model"]["merges"][0] = {"ar", "ar"}; });
  });
}

TEST_F(TokenizerFileTest, ReadsHolesBetweenIds) {
  const auto tokenizer = load([](SortedJson& json) {
    json["added_tokens"].push_back({{"id", 600}, {"content", "<far>"}, {"special", true}});
  });
  EXPECT_EQ(tokenizer->size(), 601);
  EXPECT_EQ(tokenizer->info().num_tokens, 495);
  EXPECT_EQ(tokenizer->token_bytes(550), "");
  EXPECT_EQ(tokenizer->encode("<far>"), std::vector<int32_t>{600});
}

TEST_F(TokenizerFileTest, APatternThatTakesTooLongIsAnError) {
  const auto tokenizer = load([](SortedJson& json) {
    json["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"}, {"pattern", {{"Regex", "(a+)+b"}}}, {"behavior", "Isolated"}},
          {{"type", "ByteLevel"}, {"use_regex", false}, {"add_prefix_space", false}}}}};
  });
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(" aaaaab b")), " aaaaab b");
  expect_error(ExitCode::kUnusable, {"pattern takes too long", "40 bytes"},
               [&] { tokenizer->encode(" " + std::string(39, 'a')); });
}

TEST_F(TokenizerFileTest, WhatASplitCostsIsCountedOverAllPieces) {
  // As in DeepSeek's tokenizers: a Split behind a Split, whose pieces are of one to three digits.
  const auto tokenizer = load([](SortedJson& json) {
    const auto split = [](const char* regex) -> SortedJson {
      return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
    };
    json["pre_tokenizer"] = {{"type", "Sequence"},
                             {"pretokenizers",
                              {split("\\p{N}{1,3}"),
                               split("[一-龥]+"),
                               split("[a-z]+|\\s+|\\p{N}+"),
                               {{"type", "ByteLevel"}, {"use_regex", false}, {"add_prefix_space", false}}}}};
  });
  std::string numbers, one;
  std::vector<int32_t> wanted;
  for (int i = 0; numbers.size() < 300'000; ++i) {
    one = fmt::format("{:03} {:03}", i % 1000, i * 7 % 1000);
    numbers += one;
    const std::vector<int32_t> ids = tokenizer->encode(one);
    wanted.insert(wanted.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(tokenizer->encode(numbers), wanted);
}

TEST_F(TokenizerFileTest, TakesTheIdsThatATemplateLists) {
  const auto tokenizer = load([](SortedJson& json) {
    const SortedJson begin = {{"SpecialToken", {{"id", "both"}, {"type_id", 0}}}};
    json["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", {begin, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                              {"special_tokens", {{"both", {{"id", "both"}, {"ids", {0, 5}}}}}}};
  });
  EXPECT_EQ(tokenizer->text_begin(), (std::vector<int32_t>{0, 5}));
  EXPECT_TRUE(tokenizer->text_end().empty());
}

TEST_F(TokenizerFileTest, KnowsTheNamesInTokenizerConfig) {
  write_text(dir_ / "tokenizer_config.json",
             R"({"eos_token": {"content": "<|endoftext|>"}, "bos_token": "<new>", "pad_token": null})");
  const auto tokenizer = load([](SortedJson&) {});
  EXPECT_EQ(tokenizer->info().eos, "<|endoftext|>");
  EXPECT_EQ(tokenizer->info().bos, "<new>");  // added, as transformers does
  EXPECT_EQ(tokenizer->find("<new>"), tokenizer->size() - 1);
  EXPECT_EQ(tokenizer->info().pad, "");
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
