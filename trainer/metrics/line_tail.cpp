// Reads a chunk at a time, so that memory does not grow with the file.
#include "trainer/metrics/line_tail.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/regular_file.h"

namespace tycho {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;
constexpr size_t kKnownBytes = 256;

/// Returns the object on a line; null for anything else.
Json object_on(std::string_view line) {
  Json record = Json::parse(line.begin(), line.end(), nullptr, false);
  return record.is_object() ? record : Json();
}

/// Returns the bytes at an offset: fewer when the file has become shorter.
std::string read_some(const std::string& path, int64_t offset, int64_t num_bytes) {
  const int file = open_regular_file(path);
  if (file < 0 && errno == ENOENT) return "";
  std::string bytes(static_cast<size_t>(num_bytes), '\0');
  size_t filled = 0;
  ssize_t n = file < 0 ? -1 : 1;
  while (n > 0 && filled < bytes.size()) {
    n = ::pread(file, bytes.data() + filled, bytes.size() - filled,
                static_cast<off_t>(offset + static_cast<int64_t>(filled)));
    if (n > 0)
      filled += static_cast<size_t>(n);
    else if (n < 0 && errno == EINTR)
      n = 1;
  }
  const int error = errno;
  if (file >= 0) ::close(file);
  if (n < 0) fail(ExitCode::kUnusable, "[files] expected to read {}, got: {}", path, std::strerror(error));
  bytes.resize(filled);
  return bytes;
}

}  // namespace

int64_t LineTail::size() const {
  struct stat info = {};
  return ::stat(path_.c_str(), &info) == 0 ? info.st_size : 0;
}

bool LineTail::was_replaced() const {
  if (offset_ == 0) return false;
  if (size() < offset_) return true;
  const auto num_bytes = static_cast<int64_t>(last_.size());
  return read_some(path_, offset_ - num_bytes, num_bytes) != last_;
}

bool LineTail::read(const std::function<void(const Json&)>& take, int64_t end) {
  end = std::min(end, size());
  std::string text;  // from offset_ on
  bool any = false;
  const auto pass = [&](std::string_view line) {
    const Json record = object_on(line);
    if (record.is_null()) return false;
    take(record);
    return any = true;
  };
  const auto drop = [&](size_t num_bytes) {
    last_.append(text, num_bytes - std::min(num_bytes, kKnownBytes), std::min(num_bytes, kKnownBytes));
    if (last_.size() > kKnownBytes) last_.erase(0, last_.size() - kKnownBytes);
    text.erase(0, num_bytes);
    offset_ += static_cast<int64_t>(num_bytes);
  };
  for (int64_t at = offset_; at < end;) {
    const size_t before = text.size();
    text += read_some(path_, at, std::min(kChunkBytes, end - at));
    if (text.size() == before) break;  // cut meanwhile, which the next look finds
    at += static_cast<int64_t>(text.size() - before);
    size_t begin = 0;
    for (size_t line_end; (line_end = text.find('\n', std::max(begin, before))) != std::string::npos;
         begin = line_end + 1)
      pass(std::string_view(text).substr(begin, line_end - begin));
    drop(begin);
  }
  // A line without its end that is an object is whole: no beginning of an object is one.
  if (text.ends_with('}') && pass(text)) drop(text.size());
  return any;
}

}  // namespace tycho
