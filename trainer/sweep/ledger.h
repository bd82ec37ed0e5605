// The record of a sweep: ledger.jsonl, to which every worker appends. Torch-free.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {

/// Returns one object on a line; its last member, "sum", is a checksum of the text before it. A cut or
/// garbled line is skipped, and its event is recorded again. Lines may be read twice, so each states a fact
/// that can be applied twice.
std::string ledger_line(const Json& fact);
/// Returns the fact of a line; null for a damaged one.
Json read_ledger_line(std::string_view line);

/// Owned by one thread; any number of processes append to one file.
class Ledger {
 public:
  Ledger(FileOps& files, const std::string& sweep_dir);
  /// Appends a fact with `time` (seconds since 1970, for display). Use `durable` false only for facts that a
  /// power cut voids anyway, such as a running worker. Throws Error (kStorage).
  void append(Json fact, bool durable = true);

  /// The facts appended by any process since the last call. After a compaction all of them again, with
  /// `restarted` set: drop the state made from earlier ones.
  struct News {
    bool restarted = false;
    std::vector<Json> facts;
  };
  News read_new();
  /// Returns the number of complete lines so far that could not be read.
  int64_t damaged() const { return damaged_; }
  int64_t num_bytes() const { return offset_; }

  /// Replaces the file by `facts`, which must be equivalent to its contents. Keeps facts that others append
  /// meanwhile.
  void compact(const std::vector<Json>& facts);

 private:
  void append_text(const std::string& lines, bool durable);

  FileOps& files_;
  std::string path_;
  std::shared_ptr<const void> current_;  // the file that was read, kept open so that its inode is not reused
  uint64_t inode_ = 0;
  int64_t offset_ = 0;
  int64_t damaged_ = 0;
};

}  // namespace tycho
