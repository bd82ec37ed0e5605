// A file of a cache while it is fetched: one process at a time fills it, and the next goes on where one was
// killed.
#pragma once
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace tycho {

/// Locked with flock as long as it is open: a lock ends with its process, so a kill leaves nothing to clear
/// but the bytes. Owned by one thread.
class PartFile {
 public:
  /// Waits until no other process or thread has it. Nothing when `final_path` exists by then. Throws Error:
  /// kStorage when it cannot be created or locked, kTerminated on a stop.
  static std::optional<PartFile> claim(const std::string& path, const std::string& final_path,
                                       const std::stop_token& stop);
  /// Without waiting; nothing when another has it, or it does not exist.
  static std::optional<PartFile> claim_left_over(const std::string& path);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) noexcept;
  ~PartFile();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  int64_t num_bytes() const;
  /// Keeps the first bytes.
  void cut(int64_t num_bytes);
  /// Reserves room on the disk, where the file system can. Throws Error (kStorage) when there is too little.
  void reserve(int64_t num_bytes);
  /// Makes it durable and gives it its final name. Its lock is a shared one from here on, like a reader's.
  void publish(const std::string& final_path);
  /// Gives it a name beside the cache's files, for people to look at.
  void set_aside(const std::string& bad_path);
  void remove();

 private:
  PartFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
};

/// Whether a path still names the open file.
bool names_file(const std::string& path, int descriptor);

}  // namespace tycho
