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

/// What messages about a disk that is full, or cannot be written to, say to do.
struct PartAdvice {
  const char* no_room;
  const char* not_writable;
};
inline constexpr PartAdvice kCacheAdvice = {
    "free room on that disk, set cache_limit, or choose another local_dir",
    "the cache must be writable until every shard is in it: choose another local_dir, or fill it with "
    "`tycho data preload`"};

/// Locked with flock as long as it is open: a lock ends with its process, so a kill leaves nothing to clear
/// but the bytes. Owned by one thread.
class PartFile {
 public:
  /// Waits until no other process or thread has it. Nothing when `is_made` says by then that it is no longer
  /// needed. Throws Error: kStorage when it cannot be created or locked, kTerminated on a stop.
  static std::optional<PartFile> claim(const std::string& path, const std::function<bool()>& is_made,
                                       const std::stop_token& stop, const PartAdvice& advice = kCacheAdvice);
  /// Without waiting; nothing when another has it, or it does not exist.
  static std::optional<PartFile> claim_left_over(const std::string& path);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) noexcept;
  ~PartFile();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  int64_t num_bytes() const;
  /// Keeps the first bytes; what is written next follows them.
  void cut(int64_t num_bytes);
  /// Writes where the descriptor stands.
  void write(const char* data, size_t num_bytes);
  /// Reserves room on the disk, where the file system can. Throws Error (kStorage) when there is too little.
  void reserve(int64_t num_bytes);
  /// Makes it durable and gives it its final name. Its lock is a shared one from here on, like a reader's.
  void publish(const std::string& final_path);
  /// Gives it a name beside the cache's files, for people to look at.
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

/// Whether a path still names the open file.
bool names_file(const std::string& path, int descriptor);

}  // namespace tycho
