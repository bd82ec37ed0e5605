// Texts of a file that holds many, one by one.
#pragma once
#include <cstdint>
#include <string>

namespace tycho {

/// Owned by one thread. Errors are kUnusable and name the file; after a BadRow, next() gives the row behind
/// it.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// The next text; false after the last.
  virtual bool next(std::string& text) = 0;
  /// How much of the file itself has been read, for progress.
  virtual int64_t file_bytes() const = 0;
};

}  // namespace tycho
