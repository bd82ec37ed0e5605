// Files of this machine: every byte arrives or an Error says which file and why.
#include "trainer/base/file_ops.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

struct Failure {
  ExitCode code;
  std::string message;
};

Failure failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ExitCode::kOk, "no error"};
}

mode_t mode_of(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

std::string pattern(size_t num_bytes) {
  std::string bytes(num_bytes, '\0');
  for (size_t i = 0; i < num_bytes; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

/// The umask while it lives.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

TEST(FileOps, FilesAndFoldersObeyTheUmaskAndSecretsAreTheOwners) {
  for (const mode_t mask : {0022, 0077, 0002, 0}) {
    const TempDir dir;
    const Umask umask(mask);
    real_files().make_dir(dir / "d");
    real_files().create(dir / "d/f")->close();
    real_files().append(dir / "d/g")->close();
    write_file_atomically(real_files(), dir / "d/h", "text");
    write_file_atomically(real_files(), dir / "d/secret", "text", Readers::kOwner);
    make_dirs(real_files(), dir / "d/a/b");
    for (const char* folder : {"d", "d/a", "d/a/b"}) EXPECT_EQ(mode_of(dir / folder), 0777u & ~mask);
    for (const char* file : {"d/f", "d/g", "d/h"}) EXPECT_EQ(mode_of(dir / file), 0666u & ~mask) << file;
    EXPECT_EQ(mode_of(dir / "d/secret"), 0600u);
  }
}

TEST(FileOps, NeverOverwritesWithCreate) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "f", "old");
  const Failure failure = failure_of([&] { real_files().create(dir / "f"); });
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_EQ(failure.message, "[files] cannot create " + (dir / "f") + ": File exists");
  EXPECT_EQ(read_file(dir / "f"), "old");
}

TEST(FileOps, Appends) {
  const TempDir dir;
  for (const char* text : {"one\n", "two\n"}) {
    const auto file = real_files().append(dir / "log");
    file->write(text, 4);
    file->sync();
    file->close();
  }
  EXPECT_EQ(read_file(dir / "log"), "one\ntwo\n");
}

TEST(FileOps, CreatesAndRenamesThroughNoLink) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "foreign", "text");
  fs::create_symlink("foreign", dir / "f");
  fs::create_symlink("foreign", dir / fmt::format("f.tmp-{}", ::getpid()));
  EXPECT_EQ(failure_of([&] { real_files().create(dir / "f"); }).code, ExitCode::kStorage);
  write_file_atomically(real_files(), dir / "f", "new");
  EXPECT_EQ(read_file(dir / "foreign"), "text");
  EXPECT_FALSE(fs::is_symlink(dir / "f"));
  EXPECT_EQ(read_file(dir / "f"), "new");
}

TEST(FileOps, RenamesAndRemoves) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "a", "x");
  real_files().rename(dir / "a", dir / "b");
  EXPECT_EQ(read_file(dir / "b"), "x");
  real_files().remove_file(dir / "b");
  real_files().make_dir(dir / "d");
  real_files().sync_dir(dir.path());
  real_files().remove_dir(dir / "d");
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

class DirectWriteTest : public testing::TestWithParam<size_t> {};

TEST_P(DirectWriteTest, WritesEveryByte) {
  const TempDir dir;
  const std::string bytes = pattern((size_t{17} << 20) + 4097);
  const size_t size = GetParam();
  for (const size_t piece : {size_t{1000003}, size_t{1} << 22, size + 1}) {
    const std::string path = dir / fmt::format("{}", piece);
    const auto file = real_files().create(path, true);
    for (size_t at = 0; at < size; at += piece) file->write(bytes.data() + at, std::min(piece, size - at));
    file->sync();
    file->close();
    EXPECT_TRUE(read_file(path) == bytes.substr(0, size)) << size << " bytes in pieces of " << piece;
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, DirectWriteTest,
                         testing::Values(0, 1, 4095, 4096, 4097, (8 << 20) - 1, 8 << 20, (8 << 20) + 4096,
                                         (17 << 20) + 4097));

TEST(FileOps, DirectFilesContinueAfterASync) {
  const TempDir dir;
  const auto file = real_files().create(dir / "f", true);
  file->write("abc", 3);
  file->sync();
  file->write("def", 3);
  file->close();
  EXPECT_EQ(read_file(dir / "f"), "abcdef");
}

void ignore_signal(int) {}

TEST(FileOps, ContinuesAfterSignalsAndShortWrites) {
  const TempDir dir;
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string sent = pattern(3 << 20);
  std::string received;
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm_only, nullptr);  // the reader inherits this: all signals go to the writer
  std::promise<void> reads;
  std::thread reader([&] {
    const int fd = ::open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
    reads.set_value();
    std::string part(50000, '\0');
    for (ssize_t n; (n = ::read(fd, part.data(), part.size())) > 0;)
      received.append(part.data(), static_cast<size_t>(n));
    ::close(fd);
  });
  struct sigaction action = {}, before;
  action.sa_handler = ignore_signal;  // without SA_RESTART, so that write() returns early
  sigaction(SIGALRM, &action, &before);
  pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
  const int both_ends = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);  // append() waits for no reader
  const auto file = real_files().append(fifo);
  reads.get_future().wait();
  ::close(both_ends);
  const itimerval every = {{0, 200}, {0, 200}}, never = {};
  setitimer(ITIMER_REAL, &every, nullptr);
  file->write(sent.data(), sent.size());
  setitimer(ITIMER_REAL, &never, nullptr);
  file->close();
  reader.join();
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_TRUE(received == sent);
}

TEST(FileOps, SaysWhatToDoWhenTheDiskIsFull) {
  const auto file = real_files().append("/dev/full");
  const Failure failure = failure_of([&] { file->write("x", 1); });
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_EQ(failure.message,
            "[files] cannot write /dev/full: No space left on device; free some space there or choose "
            "another folder");
}

TEST(FileOps, FailsWhereAFileMayNotGrow) {
  const TempDir dir;
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {6000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string bytes = pattern(10000);
  const Failure buffered =
      failure_of([&] { real_files().create(dir / "a")->write(bytes.data(), bytes.size()); });
  const Failure direct = failure_of([&] {
    const auto file = real_files().create(dir / "b", true);
    file->write(bytes.data(), bytes.size());
    file->close();
  });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(buffered.message, "[files] cannot write " + (dir / "a") + ": File too large");
  EXPECT_EQ(direct.message, "[files] cannot write " + (dir / "b") + ": File too large");
}

TEST(FileOps, LeavesTheOldFileOnAFullDisk) {
  const TempDir dir;
  if (::mount("tycho-test", dir.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "a tmpfs of 64 KB can be mounted by root only";
  }
  write_file_atomically(real_files(), dir / "f", "old");
  const std::string large = pattern(100000);
  const Failure failure = failure_of([&] { write_file_atomically(real_files(), dir / "f", large); });
  const std::string after = read_file(dir / "f");
  const auto num_files = std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator());
  ::umount(dir.path().c_str());
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_NE(failure.message.find("No space left on device; free some space"), std::string::npos)
      << failure.message;
  EXPECT_EQ(after, "old");
  EXPECT_EQ(num_files, 1);
}

TEST(FileOps, NamesThePathOfEveryFailure) {
  const TempDir dir;
  const std::string missing = dir / "no/such/file";
  FileOps& files = real_files();
  const std::vector<std::function<void()>> actions = {
      [&] { files.create(missing); },         [&] { files.append(missing); },
      [&] { files.make_dir(missing); },       [&] { files.remove_file(missing); },
      [&] { files.remove_dir(missing); },     [&] { files.sync_dir(missing); },
      [&] { files.rename(missing, missing); }};
  for (size_t i = 0; i < actions.size(); ++i) {
    const Failure failure = failure_of(actions[i]);
    EXPECT_EQ(failure.code, ExitCode::kStorage) << i;
    EXPECT_NE(failure.message.find(missing + ": No such file or directory"), std::string::npos)
        << failure.message;
  }
}

TEST(WriteFileAtomically, IsOldOrNewWhateverCallFails) {
  for (const bool stay_broken : {false, true}) {
    for (int fail_at = 1;; ++fail_at) {
      const TempDir dir;
      write_file_atomically(real_files(), dir / "f", "old text");
      FaultyFiles files(fail_at, stay_broken);
      const Failure failure = failure_of([&] { write_file_atomically(files, dir / "f", "new text"); });
      const std::string after = read_file(dir / "f");
      EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1) << fail_at;
      if (!files.failed()) {
        EXPECT_EQ(after, "new text");
        EXPECT_EQ(fail_at, 7);  // create, write, sync, close, rename, sync_dir
        break;
      }
      EXPECT_EQ(failure.code, ExitCode::kStorage);
      EXPECT_EQ(after, fail_at == 6 ? "new text" : "old text") << fail_at;
    }
  }
}

TEST(WriteFileAtomically, ReplacesALeftover) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / fmt::format("f.tmp-{}", ::getpid()), "left by a crash");
  write_file_atomically(real_files(), dir / "f", "text");
  EXPECT_EQ(read_file(dir / "f"), "text");
}

TEST(MakeDirs, MakesWhatIsMissing) {
  const TempDir dir;
  make_dirs(real_files(), dir / "a/b/c");
  make_dirs(real_files(), dir / "a/b/c");
  make_dirs(real_files(), dir / "a/d/");
  EXPECT_TRUE(fs::is_directory(dir / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(dir / "a/d"));
}

TEST(MakeDirs, FailsOnAFileInTheWay) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "a", "");
  EXPECT_EQ(failure_of([&] { make_dirs(real_files(), dir / "a"); }).message,
            "[files] cannot create the folder " + (dir / "a") + ": File exists");
  EXPECT_EQ(failure_of([&] { make_dirs(real_files(), dir / "a/b"); }).code, ExitCode::kStorage);
}

TEST(ReadFile, ReadsFilesOfAnySize) {
  const TempDir dir;
  for (size_t size : {0, 1, 4096, 100000}) {
    write_file_atomically(real_files(), dir / "f", pattern(size));
    EXPECT_TRUE(read_file(dir / "f") == pattern(size)) << size;
  }
  EXPECT_FALSE(read_file("/proc/self/status").empty());  // files there claim to be empty
}

TEST(ReadFile, NamesWhatCannotBeRead) {
  const TempDir dir;
  const Failure missing = failure_of([&] { read_file(dir / "f"); });
  EXPECT_EQ(missing.code, ExitCode::kUnusable);
  EXPECT_EQ(missing.message, "[files] cannot read " + (dir / "f") + ": No such file or directory");
  EXPECT_EQ(failure_of([&] { read_file(dir.path()); }).message,
            "[files] cannot read " + dir.path() + ": Is a directory");
}

TEST(ReadExactly, ReadsARangeOrNamesIt) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "f", "0123456789");
  char bytes[4];
  read_exactly(dir / "f", 6, bytes, 4);
  EXPECT_EQ(std::string(bytes, 4), "6789");
  const Failure failure = failure_of([&] { read_exactly(dir / "f", 7, bytes, 4); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_EQ(failure.message, "[files] " + (dir / "f") + " ends early: expected 4 bytes at offset 7, found 3");
  EXPECT_EQ(failure_of([&] { read_exactly(dir / "g", 0, bytes, 1); }).code, ExitCode::kUnusable);
}

}  // namespace
}  // namespace tycho
