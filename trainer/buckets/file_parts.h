// The parts of a file that is uploaded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/buckets/bucket.h"

namespace tycho {

/// A file, cut into parts of one size; the last may be shorter. Functions may be called from any thread.
class FileParts {
 public:
  /// Throws Error (kUnusable) when the file cannot be read or has another size.
  FileParts(const std::string& path, int64_t num_bytes, int64_t part_bytes);
  ~FileParts();
  FileParts(const FileParts&) = delete;

  int64_t num_bytes() const { return num_bytes_; }
  size_t count() const { return static_cast<size_t>((num_bytes_ + part_bytes_ - 1) / part_bytes_); }
  int64_t bytes_of(size_t part) const;
  /// Throws Error (kUnusable) when the file has become shorter.
  std::string read(size_t part) const;

 private:
  std::string path_;
  int descriptor_;
  int64_t num_bytes_, part_bytes_;
};

/// Returns the size of a part: the one of the options, or a larger one for a store that takes at most
/// `most_parts`.
int64_t part_bytes_of(int64_t num_bytes, int64_t most_parts, const UploadOptions& options);

}  // namespace tycho
