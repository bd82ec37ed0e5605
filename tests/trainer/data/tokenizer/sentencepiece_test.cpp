// tokenizer.model files, against SentencePiece.
#include "trainer/data/tokenizer/sentencepiece.h"

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/tokenizer/hostile_texts.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

std::string model_bytes(const std::string& name) {
  return read_file(golden("tokenizer_styles/" + name + ".model"));
}

class PieceModelTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PieceModelTest, EqualsSentencePiece) {
  const auto recorded = SortedJson::parse(read_file(golden("tokenizer_styles/encoded.json")));
  const auto tokenizer = tokenizer_from_text(model_bytes(GetParam()), GetParam());
  const auto& wanted = recorded[std::string(GetParam()) + ".model"];
  const auto unknown = wanted["unknown"].get<int32_t>();
  for (size_t i = 0; i < recorded["texts"].size(); ++i) {
    const auto ids = tokenizer->encode(recorded["texts"][i].get<std::string>());
    EXPECT_EQ(ids, wanted["ids"][i].get<std::vector<int32_t>>()) << recorded["texts"][i];
    // It decodes unknown pieces to " ⁇ ".
    if (std::find(ids.begin(), ids.end(), unknown) == ids.end()) {
      EXPECT_EQ(tokenizer->decode(ids), wanted["texts"][i].get<std::string>());
    }
  }
}

TEST_P(PieceModelTest, EqualsSentencePieceOnTenThousandHostileTexts) {
  const std::string name = std::string(GetParam()) + ".model";
  const auto tokenizer = load_tokenizer(golden("tokenizer_styles/" + name));
  const auto recorded = SortedJson::parse(read_file(golden("tokenizer_styles/hostile.json")));
  const auto unknown = recorded["styles"][name]["unknown"].get<int32_t>();
  testing::expect_recorded_digests(name, *tokenizer, [&](const std::vector<int32_t>& ids) {
    return std::count(ids.begin(), ids.end(), unknown) > 0 ? "" : tokenizer->decode(ids);
  });
}

INSTANTIATE_TEST_SUITE_P(Files, PieceModelTest, ::testing::Values("llama2", "user", "no_prefix", "no_bytes"));

TEST(SentencePieceTest, KnowsItsSpecialPieces) {
  const auto tokenizer = tokenizer_from_text(model_bytes("llama2"), "here");
  EXPECT_EQ(tokenizer->info().format, "tokenizer.model");
  EXPECT_EQ(tokenizer->info().kind, "BPE with byte fallback");
  EXPECT_EQ(tokenizer->info().bos, "<s>");
  EXPECT_EQ(tokenizer->info().eos, "</s>");
  EXPECT_TRUE(tokenizer->is_special(tokenizer->find("<s>")));
  EXPECT_FALSE(tokenizer->is_special(tokenizer->find("<0x41>")));
  // Control pieces are not found in texts, so a text cannot end itself.
  const auto ids = tokenizer->encode("</s>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->find("</s>")), 0);
  EXPECT_EQ(tokenizer->decode(ids), "</s>");
}

TEST(SentencePieceTest, KeepsBytesThatAreNotUtf8) {
  const auto tokenizer = tokenizer_from_text(model_bytes("llama2"), "here");
  const std::string text = "a\xff\xc3 \x80\xe4\xbd";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(SentencePieceTest, AddsBosAsTokenizerConfigSays) {
  TempDir dir;
  write_text(dir / "tokenizer.model", model_bytes("llama2"));
  EXPECT_TRUE(load_tokenizer(dir / "tokenizer.model")->text_begin().empty());
  write_text(dir / "tokenizer_config.json",
             R"({"tokenizer_class": "LlamaTokenizer", "add_eos_token": true})");
  const auto tokenizer = load_tokenizer(dir / "tokenizer.model");
  EXPECT_EQ(tokenizer->text_begin(), std::vector<int32_t>{tokenizer->find("<s>")});
  EXPECT_EQ(tokenizer->text_end(), std::vector<int32_t>{tokenizer->find("</s>")});
}

/// A field of the wire format.
std::string field(int number, std::string_view bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  text += static_cast<char>(bytes.size());
  return text.append(bytes);
}

TEST(SentencePieceTest, NamesWhatIsNotSupported) {
  const auto refuses = [](std::string_view what, const std::string& bytes) {
    expect_error(ExitCode::kUnusable, {"here", what}, [&] { tokenizer_from_text(bytes, "here"); });
  };
  const std::string piece = field(1, field(1, "<unk>") + "\x18\x02"), bpe = field(2, "\x18\x02");
  refuses("a model of type unigram is not supported", piece + field(2, "\x18\x01"));
  refuses("character map", piece + bpe + field(3, field(2, "map")));
  refuses("treat_whitespace_as_suffix", piece + field(2, std::string("\x18\x02\xc0\x01\x01")));
  refuses("escape_whitespaces", piece + bpe + field(3, std::string("\x28\x00", 2)));
  refuses("marked as unused", piece + field(1, field(1, "x") + "\x18\x05") + bpe);
  refuses("piece 1 is empty", piece + field(1, "\x18\x02") + bpe);
  refuses("\"<unk>\" appears twice", piece + piece + bpe);
  refuses("type 9, which does not exist", piece + field(1, field(1, "x") + "\x18\x09") + bpe);
  refuses("not UTF-8", piece + field(1, field(1, "\xff")) + bpe);
  refuses("piece 1 is not a byte", piece + field(1, field(1, "x") + "\x18\x06") + bpe);
  refuses("<0x00>", piece + field(2, std::string("\x18\x02\x98\x02\x01")));
  refuses("no unknown piece", field(1, field(1, "x")) + bpe);
  refuses("damaged", model_bytes("llama2").substr(0, 4000));
}

TEST(SentencePieceTest, SurvivesDamagedFiles) {
  const std::string good = model_bytes("user");
  uint32_t state = 3;
  const auto random = [&](size_t below) { return ((state = state * 1664525 + 1013904223) >> 8) % below; };
  for (int round = 0; round < 1000; ++round) {
    std::string bad = good;
    for (size_t edits = 1 + random(4); edits > 0; --edits) {
      const size_t at = random(bad.size());
      switch (random(3)) {
        case 0: bad[at] = static_cast<char>(bad[at] ^ 1 << random(8)); break;
        case 1: bad.resize(at + 1); break;
        case 2: bad.insert(at, bad.substr(random(bad.size()), random(50))); break;
      }
    }
    try {
      const auto tokenizer = tokenizer_from_text(bad, "bad");
      tokenizer->decode(tokenizer->encode("learning rate <tool> 学习"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
    }
  }
}

}  // namespace
}  // namespace tycho
