// Links, pipes and devices in the place of files.
#include "trainer/base/regular_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

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

std::string pattern(size_t num_bytes) {
  std::string bytes(num_bytes, '\0');
  for (size_t i = 0; i < num_bytes; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

TEST(OpenToAppend, AppendsThroughNoLinkAndToNothingButAFile) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "foreign", "text");
  fs::create_symlink("foreign", dir / "link");
  fs::create_symlink("nowhere", dir / "dangling");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_directory(dir / "real");
  fs::create_directory_symlink("real", dir / "linked");
  for (const char* name : {"link", "dangling"}) {
    const Failure failure = failure_of([&] { real_files().append(dir / name); });
    EXPECT_EQ(failure.code, ExitCode::kStorage);
    EXPECT_EQ(failure.message,
              "[files] cannot append to " + (dir / name) +
                  ": expected a file, got a link, which is not followed here; remove it or give "
                  "the file itself");
  }
  EXPECT_EQ(read_file(dir / "foreign"), "text");
  EXPECT_FALSE(fs::exists(dir / "nowhere"));
  EXPECT_EQ(failure_of([&] { real_files().append(dir / "pipe"); }).code, ExitCode::kStorage)
      << "nobody reads it";
  real_files().append(dir / "linked/log")->write("one", 3);  // links on the way are the owner's
  EXPECT_EQ(read_file(dir / "real/log"), "one");
}

TEST(RegularFile, WaitsForNoPipeAndReadsNoDevice) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", dir / "zero");
  fs::create_symlink("f", dir / "link");
  write_file_atomically(real_files(), dir / "f", "text");
  char byte = 0;
  for (const auto& [name, kind] : {std::pair("pipe", "a pipe"), std::pair("zero", "a device")}) {
    const std::string message =
        fmt::format("[files] cannot read {}: expected a file, got {}", dir / name, kind);
    for (const Failure& failure : {failure_of([&, name = name] { read_file(dir / name); }),
                                   failure_of([&, name = name] { read_exactly(dir / name, 0, &byte, 1); }),
                                   failure_of([&, name = name] { open_regular_file(dir / name); })}) {
      EXPECT_EQ(failure.code, ExitCode::kUnusable);
      EXPECT_EQ(failure.message, message);
    }
  }
  EXPECT_EQ(read_file(dir / "link"), "text");
}

TEST(RegularFile, StopsAtItsBound) {
  const TempDir dir;
  write_file_atomically(real_files(), dir / "f", pattern(2048));
  EXPECT_EQ(read_file_up_to(dir / "f", 2048).size(), 2048u);
  const Failure failure = failure_of([&] { read_file_up_to(dir / "f", 2047); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_NE(failure.message.find("expected at most 2.05 KB, got more"), std::string::npos) << failure.message;
  fs::resize_file(dir / "f", uintmax_t{1} << 40);  // nothing of it is on the disk
  EXPECT_EQ(failure_of([&] { read_file(dir / "f"); }).code, ExitCode::kUnusable);
}

TEST(ReadTypedFile, ReadsAPipeToItsEndOrItsBound) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const auto through_pipe = [&](int64_t most_bytes) {
    std::thread writer([&] {
      // A reader that stops at its bound may leave before a small pipe has taken everything.
      sigset_t signals;
      sigemptyset(&signals);
      sigaddset(&signals, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &signals, nullptr);
      const int pipe = ::open((dir / "pipe").c_str(), O_WRONLY);
      const std::string text = pattern(30000);
      const ssize_t written = ::write(pipe, text.data(), text.size());
      if (most_bytes >= std::ssize(text)) {
        EXPECT_EQ(written, std::ssize(text));
      }
      ::close(pipe);
    });
    std::string text;
    const Failure failure = failure_of([&] { text = read_typed_file(dir / "pipe", most_bytes); });
    writer.join();
    return std::pair(failure.code, text);
  };
  EXPECT_EQ(through_pipe(30000), std::pair(ExitCode::kOk, pattern(30000)));
  EXPECT_EQ(through_pipe(20000).first, ExitCode::kUnusable);
  EXPECT_EQ(failure_of([&] { read_typed_file("/dev/zero", 1 << 20); }).code, ExitCode::kUnusable);
  write_file_atomically(real_files(), dir / "f", "text");
  EXPECT_EQ(read_typed_file(dir / "f"), "text");
}

TEST(WriteTypedFile, WritesToWhatIsNoFileAndReplacesWhatIsOne) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_symlink(dir / "pipe", dir / "link");
  std::thread reader([&] { EXPECT_EQ(read_typed_file(dir / "pipe"), "text"); });
  write_typed_file(real_files(), dir / "link", "text");
  reader.join();
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_TRUE(fs::is_fifo(dir / "pipe"));
  write_typed_file(real_files(), dir / "f", "old");
  write_typed_file(real_files(), dir / "f", "new");
  EXPECT_EQ(read_file(dir / "f"), "new");
}

}  // namespace
}  // namespace tycho
