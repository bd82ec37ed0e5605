// A checkpoint of a store of objects, copied to this machine. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

/// A file of the copy. Bytes that an earlier try has left, and that are right, are not fetched again.
struct FetchedFile {
  std::string name;
  int64_t num_bytes = 0, num_fetched = 0;
};

/// Copies a checkpoint into a folder of its own below `dir`, which is created, COMMIT last. Every byte is
/// checked against COMMIT, those of an earlier try included; damaged ones are fetched again, so a copy that
/// is already there is checked and mended. Calls `on_file` after each file. Throws Error: kUnusable when the
/// checkpoint is damaged in the store; kStorage when the copy cannot be written; kFolderOwned when another
/// process is writing it.
CheckpointInfo fetch_checkpoint(const CheckpointInfo& from, FileOps& files, const std::string& dir,
                                const std::function<void(const FetchedFile&)>& on_file = {});

}  // namespace tycho
