// The bytes of a checkpoint in another number of files. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/shard_writer.h"

namespace tycho {

/// Commits a copy of a checkpoint to `dir`, a folder for checkpoints: the same tensors, train state, recipe
/// and small files, in `num_files` shards of equal bytes. With one shard, tensors are whole. Bytes are
/// verified as they are read, block by block, so that memory does not grow with the checkpoint. The parent of
/// the copy is the original. Throws Error: kUsage when num_files is not 1 to 100,000; kUnusable when the
/// original is damaged; kStorage when the copy cannot be written. A failure removes what was written.
CheckpointInfo reshard(const CheckpointReader& from, FileOps& files, const std::string& dir, int num_files);

/// Joins `parts`, the shards of a save that is not committed yet, into one shard `name` of whole tensors, and
/// removes their files. All are in `folder`; none is called `name`. Throws Error (kUnusable) when a part has
/// changed since it was written, or when together they are not whole; kStorage when it cannot be written.
WrittenShard join_shards(FileOps& files, const std::string& folder, std::vector<WrittenShard> parts,
                         const std::string& name);

}  // namespace tycho
