// Files of lines in a run folder, which a killed process may have left torn.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Appends lines. A write that failed half-way, in this process or in one that was killed, leaves a torn
/// line: the next line starts on its own, and readers skip what does not parse.
class LineFile {
 public:
  /// Throws Error (kStorage) when the file cannot be opened.
  LineFile(FileOps& files, const std::string& path);
  /// Written when it returns. Throws Error (kStorage).
  void write(std::string line);
  /// Takes back all lines that were written through this object. The file must have no other writer. Throws
  /// Error (kStorage).
  void take_back();

 private:
  std::string path_;
  int64_t begin_ = 0;  // bytes that were there before
  bool began_torn_, torn_;
  std::unique_ptr<OutputFile> file_;
};

/// The kind of event that is left of a start in the folder of a run, when it ended before its first step:
/// `text` says why; facts are `first_step`, if that was known, and the `exit_code` of an error.
inline constexpr const char* kNotStarted = "not_started";

/// The attempt that starts now in this run folder: one more than the last record of events.jsonl has. Every
/// attempt writes a record when it starts.
int64_t next_attempt(const std::string& run_dir);

/// Seconds since 1970, to the microsecond.
double now_s();

}  // namespace tycho
