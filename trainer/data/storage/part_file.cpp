// Locks a file that other processes may rename: after each lock, checks that the name still refers to this
// file.
#include "trainer/data/storage/part_file.h"

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

[[noreturn]] void fail_with(const char* what, const std::string& path, const PartAdvice& advice) {
  const int error = errno;
  std::string to_do;
  if (error == ENOSPC || error == EDQUOT) to_do = advice.no_room;
  if (error == EROFS || error == EACCES || error == EPERM) to_do = advice.not_writable;
  if (error == ENOLCK || error == EOPNOTSUPP)
    to_do = "this file system has no locks: choose a folder on a disk of this machine";
  fail(ExitCode::kStorage, "[data] cannot {} {}: {}{}{}", what, path, std::strerror(error),
       to_do.empty() ? "" : "; ", to_do);
}

/// Returns false if another process or thread has the lock.
bool try_lock(int descriptor, const std::string& path, const PartAdvice& advice) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    fail_with("lock", path, advice);
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

std::optional<PartFile> PartFile::claim(const std::string& path, const std::function<bool()>& is_made,
                                        const std::stop_token& stop, const PartAdvice& advice) {
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) fail_with("create", path, advice);
    PartFile part(path, descriptor, advice);
    bool locked = false;
    while (!(locked = try_lock(descriptor, path, advice)) && names_file(path, descriptor)) {
      if (stop.stop_requested())
        fail(ExitCode::kTerminated, "[data] stopped while another process made {}", path);
      std::this_thread::sleep_for(kPoll);
    }
    if (!locked || !names_file(path, descriptor)) continue;  // it has been published or removed meanwhile
    if (!is_made()) return part;
    part.remove();
    return std::nullopt;
  }
}

std::optional<PartFile> PartFile::claim_left_over(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return std::nullopt;
  PartFile part(path, descriptor, kCacheAdvice);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 || !names_file(path, descriptor)) return std::nullopt;
  return part;
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      advice_(other.advice_) {}

PartFile& PartFile::operator=(PartFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(advice_, other.advice_);
  return *this;
}

PartFile::~PartFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PartFile::fail_file(const char* what, const std::string& path) const { fail_with(what, path, advice_); }

int64_t PartFile::num_bytes() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) fail_file("read", path_);
  return info.st_size;
}

void PartFile::cut(int64_t num_bytes) {
  if (::ftruncate(descriptor_, num_bytes) != 0 || ::lseek(descriptor_, num_bytes, SEEK_SET) < 0)
    fail_file("write", path_);
}

void PartFile::write(const char* data, size_t num_bytes) {
  while (num_bytes > 0) {
    const ssize_t n = ::write(descriptor_, data, num_bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_file("write", path_);
    data += n, num_bytes -= static_cast<size_t>(n);
  }
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
