// Reads the texts of a file that holds many, one by one.
#pragma once
#include <cstdint>
#include <string>

namespace tycho {

/// Owned by one thread. Errors are kUnusable and name the file; after a BadRow, next() returns the row after
/// the bad one.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// Reads the next text. Returns false after the last one.
  virtual bool next(std::string& text) = 0;
  /// Number of bytes of the file that have been read, for progress.
  virtual int64_t file_bytes() const = 0;
};

}  // namespace tycho
