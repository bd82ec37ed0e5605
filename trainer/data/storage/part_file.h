// A file while it is fetched or decompressed: one process at a time fills it, and after a kill the
// next one continues.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace tycho {

/// Advice that messages give about a full or read-only disk.
struct PartAdvice {
  const char* no_room;
  const char* not_writable;
};
inline constexpr PartAdvice kCacheAdvice = {
    "free room on that disk, set cache_limit, or choose another local_dir",
    "the cache must be writable until every shard is in it: choose another local_dir, or fill it with "
    "`tycho data preload`"};

/// A partial file, locked with flock while it is open. The lock ends with its process, so that a kill leaves
/// nothing to clear but the bytes. Owned by one thread.
class PartFile {
 public:
  /// Opens or creates the file; waits until no other process or thread has it locked. Returns nothing if
  /// `is_made` is true by then. Throws Error: kStorage when the file cannot be created or locked, kTerminated
  /// on a stop.
  static std::optional<PartFile> claim(const std::string& path, const std::function<bool()>& is_made,
                                       const std::stop_token& stop, const PartAdvice& advice = kCacheAdvice);
  /// Claims an existing file without waiting. Returns nothing if it does not exist or another process or
  /// thread has it.
  static std::optional<PartFile> claim_left_over(const std::string& path);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) noexcept;
  ~PartFile();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  int64_t num_bytes() const;
  /// Truncates the file to `num_bytes`; the next write follows.
  void cut(int64_t num_bytes);
  /// Writes at the descriptor's position.
  void write(const char* data, size_t num_bytes);
  /// Reserves space on the disk, where the file system can. Throws Error (kStorage) when there is too little.
  void reserve(int64_t num_bytes);
  /// Makes the file durable and renames it to `final_path`. From then on its lock is a shared one, like a
  /// reader's.
  void publish(const std::string& final_path);
  /// Renames the file to `bad_path`, so that a user can inspect it.
  void set_aside(const std::string& bad_path);
  void remove();

 private:
  PartFile(std::string path, int descriptor, const PartAdvice& advice)
      : path_(std::move(path)), descriptor_(descriptor), advice_(advice) {}
  [[noreturn]] void fail_file(const char* what, const std::string& path) const;

  std::string path_;
  int descriptor_ = -1;
  PartAdvice advice_;
};

/// True if `path` still names the open file.
bool names_file(const std::string& path, int descriptor);

}  // namespace tycho
