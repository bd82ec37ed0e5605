// Conversions that are killed or fail, and the ones after them.
// long because: all of them share what kills, counts and compares conversions.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/convert_chat.h"

namespace tycho {
namespace {

using testing::golden;
using testing::TempDir;
using testing::write_text;

/// Nothing waits for the disk: a kill loses nothing that was written, and hundreds of conversions are quick.
class UnsyncedFiles : public FileOps {
 public:
  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    return std::make_unique<File>(FileOps::create(path, direct, readers));
  }
  void sync_dir(const std::string&) override {}

 private:
  class File : public OutputFile {
   public:
    explicit File(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}
    void write(const void* data, size_t num_bytes) override { file_->write(data, num_bytes); }
    void sync() override {}
    void close() override { file_->close(); }

   private:
    std::unique_ptr<OutputFile> file_;
  };
};

/// Ends the process, as a kill does, at the n-th call that creates, renames or removes something.
class KillingFiles : public UnsyncedFiles {
 public:
  explicit KillingFiles(int ends_at) : left_(ends_at) {}
  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    if (--left_ == 0) ::_exit(9);
    return UnsyncedFiles::create(path, direct, readers);
  }
  void rename(const std::string& from, const std::string& to) override {
    if (--left_ == 0) ::_exit(9);
    FileOps::rename(from, to);
  }
  void remove_file(const std::string& path) override {
    if (--left_ == 0) ::_exit(9);
    FileOps::remove_file(path);
  }

 private:
  int left_;
};

/// Fails the n-th call that creates or renames something.
class FaultyFiles : public UnsyncedFiles {
 public:
  explicit FaultyFiles(int fails_at) : left_(fails_at) {}
  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    count(path);
    return UnsyncedFiles::create(path, direct, readers);
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

class KilledConvertTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string corpus = read_file(golden("tokenizer/corpus.txt"));
    for (size_t i = 0; i < 10; ++i)
      write_text(temp_ / "in/" + fmt::format("{}.txt", i),
                 corpus.substr(0, corpus.find('\n', 100 + 500 * i)));
    options_.inputs = {temp_ / "in"};
    options_.tokenizer = golden("tokenizer/whole.json");
    options_.out_dir = temp_ / "out";
    options_.eos_text = "<|endoftext|>";
    options_.concat_tokens = 32;
    options_.threads = 2;
    options_.size_limit = 3000;
    options_.save_every_s = 0;
    options_.val_fraction = 0.2;
  }
  /// A conversion by another process, which may be killed. Returns its exit code.
  int convert_until(int call) const {
    const pid_t child = ::fork();
    if (child == 0) {
      KillingFiles files(call);
      try {
        convert_with(files);
      } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        ::_exit(3);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  ConvertResult convert() const {
    UnsyncedFiles files;
    return convert_with(files);
  }
  ConvertResult convert_with(FileOps& files) const {
    if (!chat_) return convert_text(options_, files);
    ConvertChatOptions options = *chat_;
    options.splits.out_dir = options_.out_dir;
    options.splits.compression = options_.compression;
    return convert_chat(options, files);
  }
  ConvertOptions with_out_dir(const std::string& name) const {
    ConvertOptions options = options_;
    options.out_dir = temp_ / name;
    return options;
  }
  /// Conversions of conversations from now on, from JSONL and Parquet.
  void use_conversations(const std::string& tokenizer) {
    for (int file = 0; file < 8; ++file) {
      std::string lines;
      for (int i = 0; i < 20; ++i)
        lines += Json{{"messages",
                       {{{"role", "user"}, {"content", "question " + std::to_string(file)}},
                        {{"role", "assistant"}, {"content", std::string(static_cast<size_t>(i + 1), 'a')}}}}}
                     .dump() +
                 "\n";
      write_text(temp_ / "chat/" + fmt::format("{}.jsonl", file), lines);
    }
    std::filesystem::copy(golden("parquet/nested/chat.parquet"), temp_ / "chat/z.parquet",
                          std::filesystem::copy_options::skip_existing);
    chat_ = {.inputs = {temp_ / "chat"}, .tokenizer = tokenizer, .threads = 2, .save_every_s = 0};
    chat_->splits.size_limit = 3000;
    chat_->splits.val_fraction = 0.2;
  }
  /// Kills one conversion after the other at each of its calls, most of them twice, and compares what the
  /// next one writes. Returns how many continued, and how many only had to complete a publication.
  std::pair<int, int> continue_after_each_kill(const std::string& name) {
    options_.out_dir = temp_ / name;
    const ConvertResult whole = convert();
    const auto wanted = bytes_of(options_.out_dir);
    int num_continued = 0, num_completed = 0;
    for (int call = 1;; ++call) {
      options_.out_dir = temp_ / (name + std::to_string(call));
      const int first = convert_until(call);
      if (first != 9) {
        EXPECT_EQ(first, 0);
        break;
      }
      const int second = call % 3 == 0 ? 9 : convert_until(call % 3 == 1 ? 4 : call);
      const ConvertResult result = second == 0 ? whole : convert();
      num_continued += has_note(result, "continued the conversion");
      num_completed += has_note(result, "completed the conversion");
      EXPECT_TRUE(bytes_of(options_.out_dir) == wanted) << call;
      for (const auto& entry : std::filesystem::directory_iterator(options_.out_dir)) {
        const std::string name = entry.path().filename();
        EXPECT_TRUE(name == "train" || name == "val" || name == "tokenizer.json") << name << " at " << call;
      }
      for (size_t i = 0; i < 2; ++i) {
        const ConvertedSplit &a = result.splits.at(i), &b = whole.splits[i];
        EXPECT_TRUE(result.splits[i].dir.ends_with(i == 0 ? "/train" : "/val"));
        EXPECT_EQ(std::tuple(a.documents, a.bytes, a.tokens, a.dropped_tokens, a.longest_bytes, a.samples,
                             a.shards, a.skipped_rows),
                  std::tuple(b.documents, b.bytes, b.tokens, b.dropped_tokens, b.longest_bytes, b.samples,
                             b.shards, b.skipped_rows));
      }
    }
    return {num_continued, num_completed};
  }
  static std::map<std::string, std::string> bytes_of(const std::string& out_dir) {
    std::map<std::string, std::string> bytes;
    for (const std::string split : {"/train", "/val"})
      for (const auto& entry : std::filesystem::directory_iterator(out_dir + split))
        bytes[split + "/" + entry.path().filename().string()] = read_file(entry.path());
    return bytes;
  }
  void remove_splits() const {
    for (const char* split : {"/train", "/val"}) std::filesystem::remove_all(options_.out_dir + split);
  }
  /// Where the first split of a conversion that was killed is.
  std::string left_over() const {
    for (const auto& entry : std::filesystem::directory_iterator(options_.out_dir))
      if (entry.path().filename().string().starts_with(".train.partial-")) return entry.path();
    return "";
  }
  static bool is_publication(const std::filesystem::path& path) {
    const std::string name = path.filename();
    return name.starts_with(".publish-") && name.find(".tmp-") == std::string::npos;
  }
  static bool has_note(const ConvertResult& result, std::string_view begins) {
    return std::any_of(result.notes.begin(), result.notes.end(),
                       [&](const std::string& note) { return note.starts_with(begins); });
  }
  static bool continued(const ConvertResult& result) { return has_note(result, "continued the conversion"); }

  TempDir temp_;
  ConvertOptions options_;
  std::optional<ConvertChatOptions> chat_;
};

TEST_F(KilledConvertTest, TheNextOneContinuesAndWritesTheSameBytes) {
  write_text(temp_ / "in/z.jsonl", "{\"text\": \"one\"}\n{\"text\": \"" + std::string(4000, 'x') + "\"}\n");
  for (const std::string compression : {"", "zstd"}) {
    options_.compression = compression;
    const auto [continued, completed] = continue_after_each_kill("text" + compression);
    EXPECT_GT(continued, 5);
    EXPECT_GE(completed, 1);
  }
}

TEST_F(KilledConvertTest, RowsThatAreSkippedAreCountedOnce) {
  const auto write_lines = [&](const std::string& folder) {
    const std::string document = "{\"text\": \"" + std::string(4000, 'x') + "\"}\n";
    for (int file = 0; file < 2; ++file)
      write_text(temp_ / (folder + fmt::format("/{}.jsonl", file)),
                 "{\n" + document + "{\"text\": null}\n" + document + "{}\n");
  };
  write_lines("lines");
  options_.inputs = {temp_ / "lines"};
  options_.rules.bad_rows = BadRows::kSkip;
  options_.val_fraction = 0.5;
  const auto [continued, completed] = continue_after_each_kill("skipping");
  EXPECT_GT(continued, 2);
  EXPECT_EQ(skipped_rows(convert_text(with_out_dir("once")).splits), 6);

  use_conversations("");
  write_text(temp_ / "chat/0.jsonl", "{}\n[]\n");
  write_text(temp_ / "chat/3.jsonl",
             "{}\n" + read_file(temp_ / "chat/3.jsonl") + "{\"prompt\": \"a\", \"response\": \"b\"}\n");
  chat_->bad_rows = BadRows::kSkip;
  EXPECT_GT(continue_after_each_kill("talks").first, 5);
  options_.out_dir = temp_ / "talks-once";
  EXPECT_EQ(skipped_rows(convert().splits), 4);
}

TEST_F(KilledConvertTest, SoDoesOneOfConversations) {
  for (const std::string& tokenizer : {std::string(), golden("tokenizer/lines.json")}) {
    use_conversations(tokenizer);
    const auto [continued, completed] = continue_after_each_kill(tokenizer.empty() ? "texts" : "tokens");
    EXPECT_GT(continued, 5);
    EXPECT_GE(completed, 1);
  }
}

TEST_F(KilledConvertTest, OtherFilesOrNoTokenizerStartConversationsOver) {
  use_conversations(golden("tokenizer/lines.json"));
  ASSERT_EQ(convert_until(40), 9);
  ASSERT_NE(left_over(), "");
  chat_->tokenizer = "";
  EXPECT_FALSE(continued(convert()));
  chat_->tokenizer = golden("tokenizer/lines.json");
  remove_splits();
  const std::string before = read_file(temp_ / "chat/7.jsonl");
  write_text(temp_ / "chat/7.jsonl", before + "\n");
  EXPECT_FALSE(continued(convert()));
}

TEST_F(KilledConvertTest, NoFailingWriteLeavesAHalfSplit) {
  options_.val_fraction = 0;
  int num_kept = 0;
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
      std::vector<std::string> names;
      for (const auto& entry : std::filesystem::directory_iterator(options_.out_dir))
        names.push_back(entry.path().filename());
      std::sort(names.begin(), names.end());
      if (names.size() == 3) {  // finished, without its name: the next one gives it to it
        EXPECT_TRUE(names[0].starts_with(".publish-") && names[1].starts_with(".train.partial-"));
        EXPECT_TRUE(convert_text(options_).notes.at(0).starts_with("completed the conversion"));
        ++num_kept;
        continue;
      }
      for (const std::string& name : names) EXPECT_EQ(name, "tokenizer.json");
    }
  }
  EXPECT_EQ(num_kept, 1);
}

/// The number of the call at which only the second of two splits lacks its name.
class PublicationTest : public KilledConvertTest {
 protected:
  void SetUp() override {
    KilledConvertTest::SetUp();
    const auto has = [&](const char* split) {
      return std::filesystem::exists(options_.out_dir + "/" + split);
    };
    for (int call = 1; has("train") == has("val"); ++call) {
      options_.out_dir = temp_ / ("out" + std::to_string(call));
      ASSERT_EQ(convert_until(call), 9);
    }
    for (const auto& entry : std::filesystem::directory_iterator(options_.out_dir)) {
      const std::string name = entry.path().filename();
      if (is_publication(entry.path())) note_ = entry.path();
      if (name.starts_with(".val.partial-")) waiting_ = entry.path();
    }
    ASSERT_TRUE(!note_.empty() && !waiting_.empty());
  }
  std::string note_, waiting_;
};

TEST_F(PublicationTest, AnyOtherConversionCompletesIt) {
  options_.concat_tokens = 16;
  testing::expect_error(ExitCode::kUsage, {"out", "/train is already there"}, [&] { convert(); });
  EXPECT_TRUE(std::filesystem::exists(options_.out_dir + "/val/index.json"));
  EXPECT_FALSE(std::filesystem::exists(note_));
}

TEST_F(PublicationTest, OneThatRunsIsLeftAlone) {
  const int running = ::open(waiting_.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(running, LOCK_EX | LOCK_NB), 0);
  testing::expect_error(ExitCode::kUsage, {"already there"}, [&] { convert(); });
  EXPECT_TRUE(std::filesystem::exists(note_));
  ::close(running);
  EXPECT_TRUE(has_note(convert(), "completed"));
}

TEST_F(PublicationTest, WhereASplitWasDeletedTheOtherIsNotPublishedAlone) {
  std::filesystem::remove_all(options_.out_dir + "/train");
  const ConvertResult result = convert();
  EXPECT_FALSE(has_note(result, "completed"));
  EXPECT_FALSE(std::filesystem::exists(note_));
  EXPECT_EQ(result.splits.size(), 2u);
}

TEST_F(PublicationTest, ADamagedNoteIsNamed) {
  for (const char* text :
       {"{}", "{\"key\": 1, \"splits\": [{\"from\": 3}]}", "{\"key\": 1, \"splits\": []}", "[", "\"\""}) {
    write_text(note_, text);
    testing::expect_error(ExitCode::kUnusable, {note_}, [&] { convert(); });
  }
  EXPECT_TRUE(std::filesystem::exists(waiting_));
}

TEST_F(KilledConvertTest, OtherFilesOrOptionsStartOver) {
  ASSERT_EQ(convert_until(20), 9);
  ASSERT_NE(left_over(), "");
  options_.concat_tokens = 16;
  const ConvertResult result = convert();
  EXPECT_FALSE(continued(result));
  EXPECT_EQ(result.warnings.size(), 2u) << "of the two folders that are left over";
  options_.concat_tokens = 32;
  remove_splits();
  write_text(temp_ / "in/9.txt", "changed");
  EXPECT_FALSE(continued(convert()));
}

TEST_F(KilledConvertTest, WhatNoneCanContinueGoesOnlyWhenItsProcessIsGone) {
  int call = 1;
  do {
    std::filesystem::remove_all(options_.out_dir);
    ASSERT_EQ(convert_until(call++), 9);
  } while (left_over().empty() || std::filesystem::exists(left_over() + "/.resume"));
  const std::string folder = left_over();
  const std::string process = folder.substr(folder.rfind('-') + 1);
  const std::string half = options_.out_dir + "/.publish-" + process + ".tmp-" + process;
  const std::string mine = options_.out_dir + "/notes.tmp-" + process;
  const std::string of_one_that_runs = options_.out_dir + "/.train.partial-1";
  for (const std::string& path : {half, mine, of_one_that_runs + "/shard", folder + "/shard"})
    write_text(path, "half");
  const int running = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(running, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(convert().warnings.size(), 3u) << "of two splits of one, and of the other";
  EXPECT_TRUE(std::filesystem::exists(folder + "/shard"));
  EXPECT_TRUE(std::filesystem::exists(half));
  ::close(running);
  remove_splits();
  const ConvertResult result = convert();
  EXPECT_EQ(result.warnings.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_FALSE(std::filesystem::exists(half));
  EXPECT_TRUE(std::filesystem::exists(mine)) << "not a file of conversions";
  EXPECT_TRUE(std::filesystem::exists(of_one_that_runs)) << "process 1 does";
}

TEST_F(KilledConvertTest, OneThatIsDamagedOrInUseIsLeftAlone) {
  ASSERT_EQ(convert_until(20), 9);
  const std::string folder = left_over();
  const int running = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(running, LOCK_EX | LOCK_NB), 0);
  EXPECT_FALSE(continued(convert()));
  ::close(running);
  remove_splits();
  const std::string state = read_file(folder + "/.resume");
  for (const std::string& bad : {std::string(), std::string("{}\n"), state.substr(0, state.size() / 2),
                                 state.substr(0, state.size() - 1) + '~'}) {
    write_text(folder + "/.resume", bad);
    EXPECT_FALSE(continued(convert()));
    remove_splits();
  }
  write_text(folder + "/.resume", state);
  EXPECT_TRUE(continued(convert()));
}

}  // namespace
}  // namespace tycho
