// From text files to a data set.
#include "trainer/data/prepare/convert.h"

#include <regex>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

std::vector<std::string> names_in(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Ten documents of growing length.
class ConvertTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string corpus = read_file(golden("tokenizer/corpus.txt"));
    for (int i = 0; i < 10; ++i) {
      auto size = static_cast<size_t>(100 + 500 * i);
      while ((static_cast<uint8_t>(corpus[size]) & 0xC0) == 0x80) ++size;  // whole characters
      const std::string text = corpus.substr(0, size);
      write_text(temp_ / "in" + std::string("/doc") + std::to_string(i) + ".txt", text);
      texts_.push_back(text);
    }
    options_.inputs = {temp_ / "in"};
    options_.tokenizer = golden("tokenizer/whole.json");
    options_.out_dir = temp_ / "out/data";
    options_.eos_text = "<|endoftext|>";
    options_.concat_tokens = 32;
    options_.threads = 3;
  }

  std::vector<int32_t> tokens_of(const std::string& split) const {
    MdsReader reader(read_mds_index(options_.out_dir + "/" + split));
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < reader.index().num_samples(); ++i) {
      const auto array = decode_mds_array("ndarray:int32", reader.read(i)[0], "[test]");
      EXPECT_EQ(array.count, 32);
      const auto* elements = reinterpret_cast<const int32_t*>(array.elements);
      tokens.insert(tokens.end(), elements, elements + array.count);
    }
    return tokens;
  }

  std::vector<int32_t> expected(const std::vector<size_t>& documents) const {
    const auto tokenizer = load_tokenizer(options_.tokenizer);
    std::vector<int32_t> tokens;
    for (const size_t document : documents) {
      for (const int32_t id : tokenizer->encode(texts_[document])) tokens.push_back(id);
      tokens.push_back(0);
    }
    tokens.resize(tokens.size() / 32 * 32);
    return tokens;
  }

  TempDir temp_;
  std::vector<std::string> texts_;
  ConvertOptions options_;
};

TEST_F(ConvertTest, PacksTheDocumentsInOrder) {
  int64_t last_done = -1;
  options_.progress = [&](const ConvertProgress& progress) {
    EXPECT_LE(progress.bytes_done, progress.bytes_total);
    last_done = progress.bytes_done;
  };
  const ConvertResult result = convert_text(options_);
  EXPECT_EQ(tokens_of("train"), expected({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  ASSERT_EQ(result.splits.size(), 1u);
  EXPECT_TRUE(result.warnings.empty());
  const ConvertedSplit& split = result.splits[0];
  EXPECT_EQ(split.documents, 10);
  EXPECT_EQ(split.bytes, last_done);  // nothing here is compressed
  EXPECT_EQ(split.tokens, split.samples * 32 + split.dropped_tokens);
  EXPECT_LT(split.dropped_tokens, 32);
  EXPECT_EQ(names_in(options_.out_dir), (std::vector<std::string>{"tokenizer.json", "train"}));
  EXPECT_EQ(names_in(split.dir), (std::vector<std::string>{"index.json", "shard.00000.mds", "tycho.json"}));
  EXPECT_EQ(read_file(options_.out_dir + "/tokenizer.json"), read_file(options_.tokenizer));

  const auto infos = dataset_info(options_.out_dir);
  ASSERT_EQ(infos.size(), 1u);
  EXPECT_EQ(infos[0].dir, split.dir);
  EXPECT_EQ(infos[0].samples, split.samples);
  EXPECT_EQ(infos[0].tokenizer_hash, load_tokenizer(options_.tokenizer)->hash());
  EXPECT_EQ(infos[0].concat_tokens, 32);
  EXPECT_EQ(infos[0].eos_text, "<|endoftext|>");
  EXPECT_EQ(infos[0].column_encodings, (std::vector<std::string>{"ndarray:int32"}));
  EXPECT_TRUE(infos[0].hashes.empty());  // as LLM Foundry writes it; tycho.json has them
  EXPECT_FALSE(read_mds_index(split.dir).shards[0].hash.empty());
  EXPECT_EQ(dataset_info(golden("mds/two_samples"))[0].tokenizer_hash, "");
  expect_error(ExitCode::kUnusable, {"index.json"}, [&] { dataset_info(temp_.path()); });
}

TEST_F(ConvertTest, ThreadsDoNotMatter) {
  convert_text(options_);
  const std::string shard = read_file(options_.out_dir + "/train/shard.00000.mds");
  for (const int threads : {1, 8}) {
    options_.out_dir = temp_ / "out" + std::to_string(threads);
    options_.threads = threads;
    convert_text(options_);
    EXPECT_EQ(read_file(options_.out_dir + "/train/shard.00000.mds"), shard);
  }
}

TEST_F(ConvertTest, EveryKthDocumentGoesToValidation) {
  options_.val_fraction = 0.2;
  const auto result = convert_text(options_);
  ASSERT_EQ(result.splits.size(), 2u);
  EXPECT_EQ(result.splits[1].documents, 2);
  EXPECT_EQ(tokens_of("train"), expected({0, 1, 2, 3, 5, 6, 7, 8}));
  EXPECT_EQ(tokens_of("val"), expected({4, 9}));
  EXPECT_EQ(dataset_info(options_.out_dir).size(), 2u);
}

TEST_F(ConvertTest, ASingleTextIsCutForValidation) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("This is line {} of a text.\r\n", i);
  write_text(temp_ / "one/a.txt", text);
  std::erase(text, '\r');
  // The share begins with a line, and is counted in the text that is trained on.
  const size_t cut = text.find('\n', std::lround(0.9 * static_cast<double>(text.size()))) + 1;
  texts_ = {text.substr(0, cut), text.substr(cut)};
  options_.inputs = {temp_ / "one/a.txt"};
  options_.val_fraction = 0.1;
  for (const int threads : {1, 3}) {
    std::filesystem::remove_all(options_.out_dir);
    options_.threads = threads;
    const ConvertResult result = convert_text(options_);
    ASSERT_EQ(result.splits.size(), 2u);
    EXPECT_EQ(tokens_of("train"), expected({0}));
    EXPECT_EQ(tokens_of("val"), expected({1}));
    EXPECT_NE(result.notes.at(0).find("a.txt is one document: its last 10 % are val"), std::string::npos);
  }
}

TEST_F(ConvertTest, DocumentsThatNothingSeparatesAreAnError) {
  options_.eos_text = "";
  expect_error(ExitCode::kUsage, {"nothing would separate", "--eos-text '<|endoftext|>'", "--no-separator"},
               [&] { convert_text(options_); });
  EXPECT_FALSE(std::filesystem::exists(options_.out_dir));
  options_.no_separator = true;
  EXPECT_TRUE(convert_text(options_).warnings.empty());
  options_.no_separator = false;
  options_.split = "single";  // a single text has nothing to be separated from
  options_.inputs = {temp_ / "in/doc9.txt"};
  EXPECT_TRUE(convert_text(options_).warnings.empty());
  options_.split = "lines";
  write_text(temp_ / "a.jsonl", "{\"text\": \"x\"}");
  options_.inputs = {temp_ / "a.jsonl"};
  expect_error(ExitCode::kUsage, {"nothing would separate"}, [&] { convert_text(options_); });
}

TEST_F(ConvertTest, WarnsAboutSeparators) {
  options_.eos_text = "the end";
  EXPECT_NE(convert_text(options_).warnings.at(0).find("\"the end\" is"), std::string::npos);
  options_.tokenizer = golden("chat/tokenizer.json");  // adds <|begin_of_text|> by itself
  options_.out_dir = temp_ / "twice";
  options_.bos_text = "<|begin_of_text|>";
  options_.eos_text = "";
  EXPECT_NE(convert_text(options_).warnings.at(0).find("it would appear twice"), std::string::npos);
  options_.no_added_tokens = true;
  options_.split = "once";
  EXPECT_TRUE(convert_text(options_).warnings.empty());
}

TEST_F(ConvertTest, ATokenizerModelHasItsOwnEndOfATextToo) {
  options_.tokenizer = golden("tokenizer_styles/llama2.model");
  options_.eos_text = "</s>";
  EXPECT_TRUE(convert_text(options_).warnings.empty());
  const std::vector<int32_t> tokens = tokens_of("train");
  const int32_t eos = load_tokenizer(options_.tokenizer)->find("</s>");
  EXPECT_EQ(eos, 2);
  EXPECT_GE(std::count(tokens.begin(), tokens.end(), eos), 9);  // the last may be in the rest
}

TEST_F(ConvertTest, JsonlIsReadByItsFieldAndMixedFoldersByWhatTheirFilesAre) {
  std::string lines;
  for (const std::string& text : texts_) lines += Json{{"meta", 1}, {"body", text}}.dump() + "\n";
  write_text(temp_ / "mixed/a.jsonl", lines);
  write_text(temp_ / "mixed/b.txt", texts_[3]);
  write_text(temp_ / "mixed/README.md", "not data");
  options_.inputs = {temp_ / "mixed"};
  options_.rules.field = "body";
  const ConvertResult result = convert_text(options_);
  EXPECT_EQ(tokens_of("train"), expected({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3}));
  EXPECT_EQ(result.splits[0].documents, 11);
  ASSERT_EQ(result.notes.size(), 2u);
  EXPECT_NE(result.notes[0].find("files are read: 1 as text, 1 as JSONL (field \"body\")"),
            std::string::npos);
  EXPECT_NE(result.notes[1].find("README.md"), std::string::npos);
}

TEST_F(ConvertTest, WhatCannotBeReadLeavesNoSplit) {
  const std::string good = "{\"text\": \"" + std::string(3000, 'x') + "\"}\n";
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += good;
  const auto refuses = [&](const std::string& name, const std::string& content, std::string_view part) {
    write_text(temp_ / name, content);
    options_.inputs = {temp_ / "in", temp_ / name};
    expect_error(ExitCode::kUnusable, {part, name}, [&] { convert_text(options_); });
    if (!std::filesystem::exists(options_.out_dir)) return;
    for (const std::string& left : names_in(options_.out_dir)) {
      EXPECT_EQ(left, "tokenizer.json");
    }
  };
  const std::string gz = read_file(golden("conversion/records.jsonl.gz"));
  refuses("cut.jsonl.gz", gz.substr(0, gz.size() / 4), "ends in the middle of its gzip data");
  refuses("late.jsonl", lines + "{\"text\": 1}\n" + lines, "late.jsonl:2001: field");
  refuses("binary.txt", std::string(100, 'x') + '\0', "binary at byte 100");
  refuses("latin1.txt", "caf\xE9 au lait", "not UTF-8 at byte 3");
}

TEST_F(ConvertTest, TheErrorOfTheFirstWrongLineIsReportedWhateverTheThreads) {
  std::string lines;
  for (int i = 0; i < 200000; ++i) lines += i % 1000 == 999 ? "{\"no\": 1}\n" : "{\"text\": \"x\"}\n";
  write_text(temp_ / "x.jsonl", lines);
  options_.inputs = {temp_ / "x.jsonl"};
  options_.threads = 8;
  for (int round = 0; round < 5; ++round)
    expect_error(ExitCode::kUnusable, {"x.jsonl:1000 has no field"}, [&] { convert_text(options_); });
}

/// The bytes that LLM Foundry's own converters wrote for the same files and flags.
class ConvertGoldenTest : public ::testing::TestWithParam<int> {};

TEST_P(ConvertGoldenTest, WritesTheBytesThatLlmFoundryWrites) {
  const auto cases = SortedJson::parse(read_file(golden("conversion/cases.json")));
  constexpr int kParts = 4;
  for (size_t i = static_cast<size_t>(GetParam()); i < cases.size(); i += kParts) {
    const auto& wanted = cases[i];
    TempDir dir;
    write_text(dir / "tokenizer.json", read_file(golden(wanted["tokenizer"].get<std::string>())));
    write_text(dir / "tokenizer_config.json", wanted["config"].dump());
    std::string input = golden("conversion/" + wanted["inputs"].get<std::string>());
    if (wanted["inputs"] == "long") {  // as make_conversion_goldens.py makes it
      std::string part =
          std::regex_replace(read_file(golden("tokenizer/corpus.txt")), std::regex("\n"), "\r\n");
      part += "Ends of lines:\r\nof Windows,\r\rof old Macs, \n\r\nand mixed \u20ac\U0001f642\r";
      std::string text;
      for (int times = 0; times < 370; ++times) text += part;
      input = dir / "long.txt";
      write_text(input, text);
    }
    ConvertOptions options{.inputs = {input}, .tokenizer = dir / "tokenizer.json", .out_dir = dir / "out"};
    options.concat_tokens = wanted["concat_tokens"];
    options.bos_text = wanted.value("bos_text", "");
    options.eos_text = wanted.value("eos_text", "");
    options.no_wrap = wanted.value("no_wrap", false);
    options.size_limit = wanted.value("size_limit", options.size_limit);
    options.no_separator = true;  // LLM Foundry asks for one only where it reads JSONL
    options.threads = 1 + static_cast<int>(i % 3);
    convert_text(options);
    EXPECT_EQ(read_file(dir / "out/train/index.json"), wanted["index"]) << wanted["name"];
    EXPECT_EQ(names_in(dir / "out/train").size(), wanted["shards"].size() + 2) << wanted["name"];
    for (const auto& [name, hash] : wanted["shards"].items())
      EXPECT_EQ(hash_hex(read_file(dir / "out/train/" + name)), hash) << wanted["name"] << " " << name;
  }
}
INSTANTIATE_TEST_SUITE_P(Parts, ConvertGoldenTest, ::testing::Range(0, 4));

TEST_F(ConvertTest, CompressedInputGivesTheSameBytes) {
  options_.inputs = {golden("conversion/records.jsonl")};
  convert_text(options_);
  const std::string shard = read_file(options_.out_dir + "/train/shard.00000.mds");
  for (const char* ending : {".gz", ".zst"}) {
    options_.inputs = {golden("conversion/records.jsonl") + ending};
    options_.split = std::string("from") + ending;
    convert_text(options_);
    EXPECT_EQ(read_file(options_.out_dir + "/" + options_.split + "/shard.00000.mds"), shard);
  }
}

TEST_F(ConvertTest, ChecksumsAreInTheIndexWhenTheyAreAskedFor) {
  options_.hashes = {"xxh3_128"};
  convert_text(options_);
  const MdsIndex index = read_mds_index(options_.out_dir + "/train");
  EXPECT_EQ(index.hashes, options_.hashes);
  EXPECT_EQ(index.shards[0].hash, hash_hex(read_file(index.shards[0].path)));
}

TEST_F(ConvertTest, NeverOverwritesASplit) {
  convert_text(options_);
  const std::string before = read_file(options_.out_dir + "/train/index.json");
  expect_error(ExitCode::kUsage, {"train is already there"}, [&] { convert_text(options_); });
  options_.split = "more";
  options_.tokenizer = golden("tokenizer/lines.json");
  expect_error(ExitCode::kUsage, {"a different tokenizer"}, [&] { convert_text(options_); });
  EXPECT_EQ(read_file(options_.out_dir + "/train/index.json"), before);
  EXPECT_EQ(names_in(options_.out_dir), (std::vector<std::string>{"tokenizer.json", "train"}));
}

TEST_F(ConvertTest, FailuresLeaveNoSplitBehind) {
  options_.concat_tokens = 1000000;
  expect_error(ExitCode::kUnusable, {"too few for one sample of 1000000"}, [&] { convert_text(options_); });
  options_.concat_tokens = 32;
  std::filesystem::create_directories(options_.out_dir + "/.train.partial-1");
  std::filesystem::create_directory(options_.out_dir + "/train");  // empty: may be used
  const auto result = convert_text(options_);
  EXPECT_NE(result.warnings.at(0).find("partial-1 is left over"), std::string::npos);
  EXPECT_EQ(names_in(options_.out_dir),
            (std::vector<std::string>{".train.partial-1", "tokenizer.json", "train"}));
}

TEST_F(ConvertTest, TheFirstDocumentsAlone) {
  options_.max_documents = 4;
  const ConvertResult result = convert_text(options_);
  EXPECT_EQ(result.splits.at(0).longest_bytes, std::ssize(texts_[3]));
  EXPECT_EQ(tokens_of("train"), expected({0, 1, 2, 3}));
}

TEST_F(ConvertTest, CompressedShardsHoldTheSameSamples) {
  options_.hashes = {"xxh64", "sha256"};
  for (const std::string name : {"zstd", "gz:1", "br:5", "bz2", "snappy"}) {
    options_.compression = name;
    options_.out_dir = temp_ / ("out/" + name.substr(0, 2));
    convert_text(options_);
    const MdsIndex index = read_mds_index(options_.out_dir + "/train");
    EXPECT_EQ(index.hashes, (std::vector<std::string>{"sha256", "xxh64"}));
    ASSERT_TRUE(index.shards.at(0).zip) << name;
    EXPECT_FALSE(std::filesystem::exists(index.shards[0].path)) << "nothing has been decompressed yet";
    EXPECT_EQ(tokens_of("train"), expected({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})) << name;
  }
}

TEST_F(ConvertTest, RejectsContradictoryOptions) {
  const auto refuses = [&](ExitCode code, std::string_view part, auto change) {
    ConvertOptions options = options_;
    change(options);
    expect_error(code, {part}, [&] { convert_text(options); });
  };
  refuses(ExitCode::kUsage, "at least one text file", [](auto& o) { o.inputs.clear(); });
  refuses(ExitCode::kUsage, "at least 2 tokens", [](auto& o) { o.concat_tokens = 1; });
  refuses(ExitCode::kUsage, "val_fraction", [](auto& o) { o.val_fraction = 1; });
  refuses(ExitCode::kUsage, "not crc7", [](auto& o) { o.hashes = {"crc7"}; });
  refuses(ExitCode::kUnusable, "levels of zstd are 1 to 22", [](auto& o) { o.compression = "zstd:99"; });
  refuses(ExitCode::kUsage, "valid split name", [](auto& o) { o.split = "../x"; });
  refuses(ExitCode::kUsage, "different names", [](auto& o) { o.val_fraction = 0.5, o.val_split = "train"; });
  refuses(ExitCode::kUnusable, "no file or folder", [](auto& o) { o.inputs = {"/none"}; });
  refuses(ExitCode::kUnusable, "/none.json", [](auto& o) { o.tokenizer = "/none.json"; });
  refuses(ExitCode::kUnusable, "is a folder", [&](auto& o) { o.tokenizer = temp_.path(); });
  EXPECT_FALSE(std::filesystem::exists(options_.out_dir));
  refuses(ExitCode::kUsage, "10 documents are too few", [](auto& o) { o.val_fraction = 0.01; });
  EXPECT_EQ(names_in(options_.out_dir), (std::vector<std::string>{"tokenizer.json"}));
}

TEST(ConvertParquetTest, GivesTheShardsOfTheSameTextsAsJsonl) {
  const TempDir temp;
  std::string lines;
  const Json texts = Json::parse(read_file(golden("parquet/texts.json"))).at("common");
  for (const Json& text : texts) lines += Json{{"text", text}}.dump() + "\n";
  write_text(temp / "texts.jsonl", lines);
  const auto convert = [&](const std::string& input, const std::string& out) {
    ConvertOptions options{
        .inputs = {input}, .tokenizer = golden("tokenizer/whole.json"), .out_dir = temp / out};
    options.concat_tokens = 16;
    options.no_separator = true;
    return convert_text(options).splits.at(0);
  };
  const ConvertedSplit wanted = convert(temp / "texts.jsonl", "jsonl");
  const ConvertedSplit split = convert(golden("parquet/groups.parquet"), "parquet");
  EXPECT_EQ(split.documents, std::ssize(texts));
  EXPECT_EQ(split.tokens, wanted.tokens);
  EXPECT_EQ(read_file(split.dir + "/shard.00000.mds"), read_file(wanted.dir + "/shard.00000.mds"));
}

}  // namespace
}  // namespace tycho
