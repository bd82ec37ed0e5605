// The bytes of a file, decompressed on the way when it is gzip or Zstandard.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tycho {

/// Owned by one thread. Errors are kUnusable and name the file.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to `size` bytes; 0 only at the end. Throws when the file cannot be read, and when compressed
  /// data are damaged or end too early.
  virtual size_t read(char* data, size_t size) = 0;
  /// How much of the file itself has been read, for progress.
  virtual int64_t file_bytes() const = 0;
};

/// The first bytes of the file decide what it is; a name that ends in .gz or .zst and holds something else is
/// an Error.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

/// The name without .gz, .zst or .zstd.
std::string uncompressed_name(const std::string& path);

/// Up to `size` bytes from the start of what open_bytes gives.
std::string read_head(const std::string& path, size_t size);

}  // namespace tycho
