// Files of lines in a run folder, which a killed process may have left torn.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Appends lines. A write that failed half-way, in this process or a killed one, leaves a torn line; the next
/// line starts on a new one, and readers skip lines that do not parse.
class LineFile {
 public:
  /// Throws Error (kStorage) when the file cannot be opened.
  LineFile(FileOps& files, const std::string& path);
  /// Writes a line. It is written when this returns. Throws Error (kStorage).
  void write(std::string line);
  /// Removes all lines written through this object. The file must have no other writer. Throws Error
  /// (kStorage).
  void take_back();

 private:
  std::string path_;
  int64_t begin_ = 0;  // bytes in the file before
  bool began_torn_, torn_;
  std::unique_ptr<OutputFile> file_;
};

/// Kind of the event that a start leaves in the run folder when it ended before its first step: `text` says
/// why; facts are `first_step`, if known, and the `exit_code` of an error.
inline constexpr const char* kNotStarted = "not_started";

/// Returns the number of the attempt that starts now in this run folder: one more than the last record of
/// events.jsonl. Every attempt writes a record when it starts.
int64_t next_attempt(const std::string& run_dir);

/// Returns seconds since 1970, to the microsecond.
double now_s();

}  // namespace tycho
