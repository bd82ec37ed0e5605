// Reads with pread, so that threads share one descriptor.
#include "trainer/buckets/file_parts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/base/regular_file.h"

namespace tycho {

FileParts::FileParts(const std::string& path, int64_t num_bytes, int64_t part_bytes)
    : path_(path), descriptor_(open_regular_file(path)), num_bytes_(num_bytes), part_bytes_(part_bytes) {
  if (descriptor_ < 0) fail(ExitCode::kUnusable, "[bucket] cannot read {}: {}", path, std::strerror(errno));
  struct stat info {};
  if (::fstat(descriptor_, &info) == 0 && info.st_size == num_bytes) return;
  ::close(descriptor_);
  fail(ExitCode::kUnusable, "[bucket] {}: expected {} bytes to upload, got {}", path, num_bytes,
       info.st_size);
}

FileParts::~FileParts() { ::close(descriptor_); }

int64_t FileParts::bytes_of(size_t part) const {
  return std::min(part_bytes_, num_bytes_ - static_cast<int64_t>(part) * part_bytes_);
}

std::string FileParts::read(size_t part) const {
  std::string bytes(static_cast<size_t>(bytes_of(part)), '\0');
  const int64_t begin = static_cast<int64_t>(part) * part_bytes_;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n =
        ::pread(descriptor_, bytes.data() + done, bytes.size() - done, begin + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      fail(ExitCode::kUnusable, "[bucket] cannot read {}: {}", path_,
           n < 0 ? std::strerror(errno) : "it has become shorter");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

int64_t part_bytes_of(int64_t num_bytes, int64_t most_parts, const UploadOptions& options) {
  constexpr int64_t kMiB = 1 << 20;
  const int64_t least = (num_bytes + most_parts - 1) / most_parts;
  return least <= options.part_bytes ? options.part_bytes : (least + kMiB - 1) / kMiB * kMiB;
}

}  // namespace tycho
