// Conversions that are killed, and the ones after them.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/convert/convert.h"

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

/// Ends the process, as a kill does, at the n-th call that creates or renames something.
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

 private:
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
        convert_text(options_, files);
      } catch (...) {
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
    return convert_text(options_, files);
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
  static bool continued(const ConvertResult& result) {
    return std::any_of(result.notes.begin(), result.notes.end(),
                       [](const std::string& note) { return note.starts_with("continued the conversion"); });
  }

  TempDir temp_;
  ConvertOptions options_;
};

TEST_F(KilledConvertTest, TheNextOneContinuesAndWritesTheSameBytes) {
  write_text(temp_ / "in/z.jsonl", "{\"text\": \"one\"}\n{\"text\": \"" + std::string(4000, 'x') + "\"}\n");
  for (const std::string compression : {"", "zstd"}) {
    options_.compression = compression;
    options_.out_dir = temp_ / "whole" + compression;
    const ConvertResult whole = convert();
    const auto wanted = bytes_of(options_.out_dir);
    int num_continued = 0;
    for (int call = 1;; call += 2) {
      options_.out_dir = temp_ / ("killed" + compression) + std::to_string(call);
      if (convert_until(call) == 0) break;
      if (std::filesystem::exists(options_.out_dir + "/train")) continue;  // one of two splits is complete
      const int second = convert_until(call + 3);                          // killed again, or at its end
      if (second != 0 && std::filesystem::exists(options_.out_dir + "/train")) continue;
      const ConvertResult result = second == 0 ? whole : convert();
      num_continued += continued(result);
      EXPECT_TRUE(bytes_of(options_.out_dir) == wanted) << call;
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(result.splits[i].documents, whole.splits[i].documents);
        EXPECT_EQ(result.splits[i].tokens, whole.splits[i].tokens);
        EXPECT_EQ(result.splits[i].longest_bytes, whole.splits[i].longest_bytes);
      }
    }
    EXPECT_GT(num_continued, 5);
  }
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
