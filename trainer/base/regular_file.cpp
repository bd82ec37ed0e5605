// Opens without waiting, then looks at what was opened: a name may lead elsewhere a moment later.
#include "trainer/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr size_t kPieceBytes = 4096;

/// An open file descriptor, closed without a report.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_now(const std::string& path, int flags) {
  int fd;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (fd < 0 && errno == EINTR);
  return fd;
}

[[noreturn]] void fail_to_read(const std::string& path, int error) {
  fail(ExitCode::kUnusable, "[files] cannot read {}: {}", path, std::strerror(error));
}

[[noreturn]] void fail_to_write(const std::string& path) {
  fail(ExitCode::kStorage, "[files] cannot write {}: {}", path, std::strerror(errno));
}

const char* kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR: return "a folder";
    case S_IFIFO: return "a pipe";
    case S_IFSOCK: return "a socket";
    case S_IFCHR:
    case S_IFBLK: return "a device";
    default: return "another kind of file";
  }
}

[[noreturn]] void fail_too_large(const std::string& path, int64_t most_bytes) {
  fail(ExitCode::kUnusable, "[files] cannot read {}: expected at most {}, got more; is it the right file?",
       path, human_bytes(static_cast<double>(most_bytes)));
}

/// Reads the rest of an open file.
std::string read_to_end(const OpenFile& file, const std::string& path, size_t expected, int64_t most_bytes) {
  std::string text(expected, '\0');
  size_t filled = 0;
  while (true) {
    // It may have grown, or have no size like /proc.
    if (filled == text.size())
      text.resize(filled + (filled > expected ? std::max(kPieceBytes, filled / 2) : kPieceBytes));
    const ssize_t n = ::read(file.get(), text.data() + filled, text.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_to_read(path, errno);
    if (n == 0) break;
    filled += static_cast<size_t>(n);
    if (filled > static_cast<size_t>(most_bytes)) fail_too_large(path, most_bytes);
  }
  text.resize(filled);
  return text;
}

}  // namespace

int open_to_append(const std::string& path) {
  // Without O_NONBLOCK a pipe that nobody reads would keep us waiting.
  OpenFile file(open_now(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ELOOP)
    fail(ExitCode::kStorage,
         "[files] cannot append to {}: expected a file, got a link, which is not followed here; remove it or "
         "give "
         "the file itself",
         path);
  if (file.get() < 0 || ::fcntl(file.get(), F_SETFL, O_APPEND) < 0) return -1;
  return file.release();
}

int open_regular_file(const std::string& path) {
  OpenFile file(open_now(path, O_RDONLY | O_NONBLOCK));
  struct stat info;
  if (file.get() < 0 || ::fstat(file.get(), &info) < 0) return -1;
  if (S_ISREG(info.st_mode)) return file.release();
  if (S_ISDIR(info.st_mode)) return errno = EISDIR, -1;
  fail(ExitCode::kUnusable, "[files] cannot read {}: expected a file, got {}", path, kind_of(info.st_mode));
}

std::string read_file_up_to(const std::string& path, int64_t most_bytes) {
  const OpenFile file(open_regular_file(path));
  struct stat info;
  if (file.get() < 0 || ::fstat(file.get(), &info) < 0) fail_to_read(path, errno);
  if (info.st_size > most_bytes) fail_too_large(path, most_bytes);
  return read_to_end(file, path, static_cast<size_t>(info.st_size), most_bytes);
}

std::string read_typed_file(const std::string& path, int64_t most_bytes) {
  struct stat info;
  if (::stat(path.c_str(), &info) < 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))
    return read_file_up_to(path, most_bytes);
  const OpenFile file(open_now(path, O_RDONLY));
  if (file.get() < 0) fail_to_read(path, errno);
  return read_to_end(file, path, 0, most_bytes);
}

bool is_stream(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

void write_typed_file(FileOps& files, const std::string& path, std::string_view text) {
  if (!is_stream(path)) return write_file_atomically(files, path, text);
  const OpenFile file(open_now(path, O_WRONLY));
  if (file.get() < 0) fail_to_write(path);
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno != EINTR) fail_to_write(path);
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace tycho
