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

 private:
  bool torn_;
  std::unique_ptr<OutputFile> file_;
};

/// The attempt that starts now in this run folder: one more than the last record of events.jsonl has. Every
/// attempt writes a record when it starts.
int64_t next_attempt(const std::string& run_dir);

/// Seconds since 1970, to the microsecond.
double now_s();

}  // namespace tycho
