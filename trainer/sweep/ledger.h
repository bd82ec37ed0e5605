// The record of a sweep: ledger.jsonl, to which every worker appends. Torch-free.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {

/// One object a line; the last member, "sum", is a checksum of the text before it. A line that was cut or
/// garbled is skipped: what it said happens again. Lines may be read twice, so each says a fact that is the
/// same the second time.
std::string ledger_line(const Json& fact);
/// The fact of a line; null for one that is damaged.
Json read_ledger_line(std::string_view line);

/// Owned by one thread; any number of processes append to one file.
class Ledger {
 public:
  Ledger(FileOps& files, const std::string& sweep_dir);
  /// Appends; `time` (seconds since 1970, for people) is added. Durably, but for facts that a power cut makes
  /// void anyway, as that somebody works. Throws Error (kStorage).
  void append(Json fact, bool durable = true);

  /// Facts that were appended since the last call, by anybody. After a compaction all of them again, with
  /// `restarted` set: what was made of earlier ones is to be forgotten.
  struct News {
    bool restarted = false;
    std::vector<Json> facts;
  };
  News read_new();
  /// Whole lines that could not be read, so far.
  int64_t damaged() const { return damaged_; }
  int64_t num_bytes() const { return offset_; }

  /// Replaces the file by `facts`, which say the same as all that it holds. Facts that others append
  /// meanwhile are kept.
  void compact(const std::vector<Json>& facts);

 private:
  void append_text(const std::string& lines, bool durable);

  FileOps& files_;
  std::string path_;
  std::shared_ptr<const void> current_;  // the file that was read, open, so that its inode is not used again
  uint64_t inode_ = 0;
  int64_t offset_ = 0;
  int64_t damaged_ = 0;
};

}  // namespace tycho
