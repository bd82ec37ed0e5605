// The lines of a file that another process appends to, each read once. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Reads a file of JSON lines from where it stopped before. Owned by one thread. An absent file is an empty
/// one.
class LineTail {
 public:
  explicit LineTail(std::string path) : path_(std::move(path)) {}

  /// Returns true when the file no longer begins with what was read: it was cut, written anew, or is another
  /// one. What was taken from it is then void; rewind() and read it again.
  bool was_replaced() const;
  /// Begins again with the first line.
  void rewind() { offset_ = 0, last_.clear(); }
  /// Passes the objects among the new lines to `take`; returns true when there were any. Leaves a last line
  /// that is still being written for the next call, skips others that do not parse, and reads no further than
  /// to `end` bytes. Throws Error (kUnusable) when the file cannot be read.
  bool read(const std::function<void(const Json&)>& take, int64_t end = INT64_MAX);
  /// Returns the size of the file in bytes.
  int64_t size() const;

 private:
  std::string path_;
  int64_t offset_ = 0;  // end of the last line that was passed or skipped
  std::string last_;    // bytes before `offset_`, to know the file by
};

}  // namespace tycho
