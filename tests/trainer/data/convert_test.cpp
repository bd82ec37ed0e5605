// From text files to a data set.
#include "trainer/data/convert.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/loader.h"
#include "trainer/data/mds.h"
#include "trainer/data/tokenizer.h"

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
      const std::string text = corpus.substr(0, static_cast<size_t>(100 + 500 * i));
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
  EXPECT_EQ(split.bytes, last_done);
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
  EXPECT_EQ(infos[0].hashes, (std::vector<std::string>{"xxh3_128"}));
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

TEST_F(ConvertTest, LargeFilesAreCutWithoutATrace) {
  std::string text;
  while (text.size() < 10 << 20) text += texts_[9];
  write_text(temp_ / "large.txt", text);
  options_.inputs = {temp_ / "large.txt"};
  texts_ = {text};
  convert_text(options_);
  EXPECT_EQ(tokens_of("train"), expected({0}));
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

TEST_F(ConvertTest, WarnsAboutSeparators) {
  options_.eos_text = "";
  EXPECT_NE(convert_text(options_).warnings.at(0).find("--eos-text"), std::string::npos);
  options_.split = "other";
  options_.eos_text = "the end";
  EXPECT_NE(convert_text(options_).warnings.at(0).find("\"the end\" is"), std::string::npos);
}

TEST_F(ConvertTest, KeepsWhatIsThere) {
  convert_text(options_);
  const std::string before = read_file(options_.out_dir + "/train/index.json");
  expect_error(ExitCode::kUsage, {"train is already there"}, [&] { convert_text(options_); });
  options_.split = "more";
  options_.tokenizer = golden("tokenizer/lines.json");
  expect_error(ExitCode::kUsage, {"another tokenizer"}, [&] { convert_text(options_); });
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

/// Fails the n-th call that creates or renames something.
class FaultyFiles : public FileOps {
 public:
  explicit FaultyFiles(int fails_at) : left_(fails_at) {}
  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    count(path);
    return FileOps::create(path, direct, readers);
  }
  void rename(const std::string& from, const std::string& to) override {
    count(to);
    FileOps::rename(from, to);
  }
  bool failed() const { return left_ <= 0; }

 private:
  void count(const std::string& path) {
    if (--left_ == 0) fail(ExitCode::kStorage, "[files] cannot write {}", path);
  }
  int left_;
};

TEST_F(ConvertTest, NoFailingWriteLeavesAHalfSplit) {
  options_.size_limit = 10000;
  for (int call = 1;; ++call) {
    options_.out_dir = temp_ / "faulty" + std::to_string(call);
    FaultyFiles files(call);
    try {
      convert_text(options_, files);
      EXPECT_FALSE(files.failed());
      break;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
      EXPECT_FALSE(std::filesystem::exists(options_.out_dir + "/train"));
      for (const std::string& name : names_in(options_.out_dir)) EXPECT_EQ(name, "tokenizer.json");
    }
  }
}

TEST_F(ConvertTest, RefusesOptionsThatMakeNoSense) {
  const auto refuses = [&](ExitCode code, std::string_view part, auto change) {
    ConvertOptions options = options_;
    change(options);
    expect_error(code, {part}, [&] { convert_text(options); });
  };
  refuses(ExitCode::kUsage, "at least one text file", [](auto& o) { o.inputs.clear(); });
  refuses(ExitCode::kUsage, "at least 2 tokens", [](auto& o) { o.concat_tokens = 1; });
  refuses(ExitCode::kUsage, "val_fraction", [](auto& o) { o.val_fraction = 1; });
  refuses(ExitCode::kUsage, "10 documents are too few", [](auto& o) { o.val_fraction = 0.01; });
  refuses(ExitCode::kUsage, "name of a split", [](auto& o) { o.split = "../x"; });
  refuses(ExitCode::kUsage, "different names", [](auto& o) { o.val_fraction = 0.5, o.val_split = "train"; });
  refuses(ExitCode::kUnusable, "no file or folder", [](auto& o) { o.inputs = {"/none"}; });
  refuses(ExitCode::kUnusable, "/none.json", [](auto& o) { o.tokenizer = "/none.json"; });
  EXPECT_FALSE(std::filesystem::exists(options_.out_dir));
}

}  // namespace
}  // namespace tycho
