// Reads the bytes of a file, and decompresses gzip and Zstandard.
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
  /// Reads up to `size` bytes. Returns 0 only at the end. Throws Error when the file cannot be read, and when
  /// compressed data is damaged or ends too early.
  virtual size_t read(char* data, size_t size) = 0;
  /// Number of bytes of the file itself that have been read, for progress.
  virtual int64_t file_bytes() const = 0;
};

/// Opens a file. Its first bytes decide its format. Throws Error for a name that ends in .gz or .zst if the
/// contents are something else.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

/// Returns the name without .gz, .zst or .zstd.
std::string uncompressed_name(const std::string& path);

/// Returns up to `size` bytes from the start of the decompressed file.
std::string read_head(const std::string& path, size_t size);

}  // namespace tycho
