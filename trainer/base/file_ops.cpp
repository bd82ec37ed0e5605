// The real implementation of the file-system interface, and helpers on top of it.
#include "trainer/base/file_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/regular_file.h"

namespace tycho {
namespace {

constexpr size_t kBlockBytes = 4096;
constexpr size_t kBounceBytes = size_t{8} << 20;

const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "; free some space there or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS: return "; choose a folder that you can write to";
    default: return "";
  }
}

[[noreturn]] void fail_write(const char* verb, const std::string& path, int error) {
  fail(ExitCode::kStorage, "[files] cannot {} {}: {}{}", verb, path, std::strerror(error), advice(error));
}

[[noreturn]] void fail_read(const std::string& path, int error) {
  fail(ExitCode::kUnusable, "[files] cannot read {}: {}", path, std::strerror(error));
}

/// An open file descriptor, closed without a report.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  int fd;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

struct FreeAligned {
  void operator()(char* p) const { std::free(p); }
};

class RealFile : public OutputFile {
 public:
  RealFile(int fd, std::string path, bool direct) : fd_(fd), path_(std::move(path)) {
    if (!direct) return;
    bounce_.reset(static_cast<char*>(std::aligned_alloc(kBlockBytes, kBounceBytes)));
    // Asked for after the file exists: open(O_CREAT | O_DIRECT) leaves a file behind where it is refused.
    if (!bounce_ || ::fcntl(fd, F_SETFL, O_DIRECT) < 0) bounce_.reset();
  }

  void write(const void* data, size_t num_bytes) override {
    const char* bytes = static_cast<const char*>(data);
    if (!bounce_) return write_out(bytes, num_bytes);
    if (filled_ == 0 && reinterpret_cast<uintptr_t>(bytes) % kBlockBytes == 0) {
      const size_t whole = num_bytes / kBlockBytes * kBlockBytes;
      write_out(bytes, whole);
      bytes += whole, num_bytes -= whole;
    }
    while (num_bytes > 0) {
      const size_t n = std::min(num_bytes, kBounceBytes - filled_);
      std::memcpy(bounce_.get() + filled_, bytes, n);
      filled_ += n, bytes += n, num_bytes -= n;
      if (filled_ == kBounceBytes) flush_blocks();
    }
  }

  void sync() override {
    if (sync_failed_) fail_write("sync again", path_, EIO);
    flush();
    int result;
    do result = ::fsync(fd_.get());
    while (result < 0 && errno == EINTR);
    sync_failed_ = result < 0;
    if (sync_failed_) fail_write("sync", path_, errno);
  }

  void close() override {
    flush();
    // Linux has closed the descriptor even when close() reports an error.
    if (::close(fd_.release()) < 0 && errno != EINTR) fail_write("close", path_, errno);
  }

 private:
  /// Writes all whole blocks of the buffer and moves the rest to its front.
  void flush_blocks() {
    const size_t whole = filled_ / kBlockBytes * kBlockBytes;
    write_out(bounce_.get(), whole);
    std::memmove(bounce_.get(), bounce_.get() + whole, filled_ - whole);
    filled_ -= whole;
  }

  /// Writes the whole buffer. A write with O_DIRECT cannot end inside a block, so this ends O_DIRECT for the
  /// file.
  void flush() {
    if (!bounce_) return;
    flush_blocks();
    drop_direct();
    write_out(bounce_.get(), filled_);
    bounce_.reset();
    filled_ = 0;
  }

  void drop_direct() {
    if (::fcntl(fd_.get(), F_SETFL, 0) < 0) fail_write("write", path_, errno);
    direct_dropped_ = true;
  }

  void write_out(const char* bytes, size_t num_bytes) {
    while (num_bytes > 0) {
      const ssize_t n = ::write(fd_.get(), bytes, num_bytes);
      if (n >= 0) {
        bytes += n, num_bytes -= static_cast<size_t>(n);
        // A short write may end inside a block, where O_DIRECT cannot go on.
        if (bounce_ && !direct_dropped_ && n % kBlockBytes != 0) drop_direct();
      } else if (errno == EINVAL && bounce_ && !direct_dropped_) {
        drop_direct();  // the file system took the flag and wants other blocks
      } else if (errno != EINTR) {
        fail_write("write", path_, errno);
      }
    }
  }

  Descriptor fd_;
  std::string path_;
  std::unique_ptr<char, FreeAligned> bounce_;  // null when writes go through the page cache
  size_t filled_ = 0;
  bool direct_dropped_ = false;
  bool sync_failed_ = false;
};

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool is_dir(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

std::unique_ptr<OutputFile> FileOps::create(const std::string& path, bool direct, Readers readers) {
  const mode_t mode = readers == Readers::kOwner ? 0600 : 0666;
  const int fd = open_retrying(path, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (fd < 0) fail_write("create", path, errno);
  return std::make_unique<RealFile>(fd, path, direct);
}

std::unique_ptr<OutputFile> FileOps::append(const std::string& path) {
  const int fd = open_to_append(path);
  if (fd < 0) fail_write("append to", path, errno);
  return std::make_unique<RealFile>(fd, path, false);
}

void FileOps::make_dir(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) < 0) fail_write("create the folder", path, errno);
}

void FileOps::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) < 0) fail_write("rename a file to", to, errno);
}

bool FileOps::link(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return true;
  const int error = errno;
  if (error != EEXIST) fail_write("link a file to", to, error);
  // A network may lose the answer to a link that was made, and ask again.
  struct stat ours = {}, theirs = {};
  return ::stat(from.c_str(), &ours) == 0 && ::stat(to.c_str(), &theirs) == 0 && ours.st_ino == theirs.st_ino;
}

void FileOps::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) < 0) fail_write("remove", path, errno);
}

void FileOps::remove_dir(const std::string& path) {
  if (::rmdir(path.c_str()) < 0) fail_write("remove the folder", path, errno);
}

void FileOps::sync_dir(const std::string& path) {
  const Descriptor dir(open_retrying(path, O_RDONLY | O_DIRECTORY));
  if (dir.get() < 0) fail_write("open the folder", path, errno);
  int result;
  do result = ::fsync(dir.get());
  while (result < 0 && errno == EINTR);
  // Some network file systems know no fsync of folders and make names durable at once.
  if (result < 0 && errno != EINVAL && errno != ENOTSUP) fail_write("sync the folder", path, errno);
}

FileOps& real_files() {
  static FileOps files;
  return files;
}

void write_file_atomically(FileOps& files, const std::string& path, std::string_view text, Readers readers) {
  const std::string temporary = path + ".tmp-" + std::to_string(::getpid());
  // Only an earlier process of the same number can have left one.
  if (::access(temporary.c_str(), F_OK) == 0) files.remove_file(temporary);
  try {
    const auto file = files.create(temporary, /*direct=*/false, readers);
    file->write(text.data(), text.size());
    file->sync();
    file->close();
    files.rename(temporary, path);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  files.sync_dir(parent_of(path));
}

void make_dirs(FileOps& files, const std::string& path) {
  if (is_dir(path)) return;
  const std::string parent = parent_of(path);
  make_dirs(files, parent);
  try {
    files.make_dir(path);
  } catch (const Error&) {
    if (!is_dir(path)) throw;  // another process may have made it meanwhile
  }
  files.sync_dir(parent);
}

std::string read_file(const std::string& path) { return read_file_up_to(path, kMostFileBytes); }

void read_exactly(const std::string& path, int64_t offset, void* data, size_t num_bytes) {
  const Descriptor file(open_regular_file(path));
  if (file.get() < 0) fail_read(path, errno);
  char* bytes = static_cast<char*>(data);
  size_t filled = 0;
  while (filled < num_bytes) {
    const auto position = static_cast<off_t>(offset + static_cast<int64_t>(filled));
    const ssize_t n = ::pread(file.get(), bytes + filled, num_bytes - filled, position);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_read(path, errno);
    if (n == 0) {
      fail(ExitCode::kUnusable, "[files] {} ends early: expected {} bytes at offset {}, found {}", path,
           num_bytes, offset, filled);
    }
    filled += static_cast<size_t>(n);
  }
}

}  // namespace tycho
