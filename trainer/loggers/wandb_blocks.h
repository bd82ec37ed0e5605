// The blocks of a W&B file: LevelDB's log format, with a plain CRC-32 of type and data.
// https://github.com/google/leveldb/blob/main/doc/log_format.md
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tycho {

/// Cuts records into blocks of 32 KiB.
class WandbBlocks {
 public:
  /// Returns the first bytes of a file.
  std::string header();
  /// Returns a record as the next bytes of the file.
  std::string record(std::string_view bytes);

 private:
  std::string piece(std::string_view bytes, char type);
  size_t offset_ = 0;  // offset in the file
};

/// A record, and the offset in its file at which the next one begins.
struct WandbBlockRecord {
  std::string bytes;
  size_t end = 0;
};

/// Reads the record that begins at offset `at` of a file, 0 for the first one. `bytes` is the file from there
/// on. Returns nullopt when the record is not there as a whole, or damaged.
std::optional<WandbBlockRecord> read_wandb_record(std::string_view bytes, size_t at);

/// Returns the records of a file, one after the other, also while another thread or process adds to it. Used
/// by one thread.
class WandbBlockFile {
 public:
  explicit WandbBlockFile(std::string path) : path_(std::move(path)) {}
  /// Returns nullopt while the next record is not there as a whole. Throws Error (kUnusable) when the file
  /// cannot be opened.
  std::optional<std::string> next();
  const std::string& path() const { return path_; }

 private:
  /// Returns true when there are more bytes than before.
  bool read_on();

  std::string path_;
  std::string bytes_;    // part of the file
  size_t consumed_ = 0;  // bytes of bytes_ before at_
  size_t at_ = 0;        // begin of the next record in the file
};

}  // namespace tycho
