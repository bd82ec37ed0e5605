// A lock on a file whose name changes hands: after each lock, the name must still be the file's.
#include "trainer/data/remote/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(20);

[[noreturn]] void fail_file(const char* what, const std::string& path) {
  const int error = errno;
  const char* advice = "";
  if (error == ENOSPC || error == EDQUOT)
    advice = "; free room on that disk, set cache_limit, or choose another local_dir";
  if (error == EROFS || error == EACCES || error == EPERM)
    advice =
        "; the cache must be writable until every shard is in it: choose another local_dir, or fill it with "
        "`tycho data preload`";
  if (error == ENOLCK || error == EOPNOTSUPP)
    advice = "; this file system has no locks: choose a local_dir on a disk of this machine";
  fail(ExitCode::kStorage, "[data] cannot {} {}: {}{}", what, path, std::strerror(error), advice);
}

/// False when another has it.
bool try_lock(int descriptor, const std::string& path) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    fail_file("lock", path);
  }
  return true;
}

}  // namespace

bool names_file(const std::string& path, int descriptor) {
  struct stat named {
  }, open{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(descriptor, &open) == 0 &&
         named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

std::optional<PartFile> PartFile::claim(const std::string& path, const std::string& final_path,
                                        const std::stop_token& stop) {
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) fail_file("create", path);
    PartFile part(path, descriptor);
    bool locked = false;
    while (!(locked = try_lock(descriptor, path)) && names_file(path, descriptor)) {
      if (stop.stop_requested())
        fail(ExitCode::kTerminated, "[data] stopped while another process fetched {}", final_path);
      std::this_thread::sleep_for(kPoll);
    }
    if (!locked || !names_file(path, descriptor)) continue;  // it has been published or removed meanwhile
    if (::access(final_path.c_str(), F_OK) != 0) return part;
    part.remove();
    return std::nullopt;
  }
}

std::optional<PartFile> PartFile::claim_left_over(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return std::nullopt;
  PartFile part(path, descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 || !names_file(path, descriptor)) return std::nullopt;
  return part;
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

PartFile& PartFile::operator=(PartFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

PartFile::~PartFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t PartFile::num_bytes() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) fail_file("read", path_);
  return info.st_size;
}

void PartFile::cut(int64_t num_bytes) {
  if (::ftruncate(descriptor_, num_bytes) != 0) fail_file("write", path_);
}

void PartFile::reserve(int64_t num_bytes) {
  if (num_bytes <= 0 || ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, num_bytes) == 0) return;
  if (errno == ENOSPC || errno == EDQUOT)
    fail_file(fmt::format("reserve {} for", human_bytes(static_cast<double>(num_bytes))).c_str(), path_);
}

void PartFile::publish(const std::string& final_path) {
  if (::fdatasync(descriptor_) != 0) fail_file("write", path_);
  ::flock(descriptor_, LOCK_SH);
  if (::rename(path_.c_str(), final_path.c_str()) != 0) fail_file("create", final_path);
}

void PartFile::set_aside(const std::string& bad_path) {
  if (::rename(path_.c_str(), bad_path.c_str()) != 0) fail_file("create", bad_path);
}

void PartFile::remove() {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) fail_file("remove", path_);
}

}  // namespace tycho
