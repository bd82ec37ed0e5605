// The bytes of a checkpoint in another number of files. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/shard_writer.h"

namespace tycho {

/// Commits a copy of a checkpoint to `dir`, a folder for checkpoints: the same tensors, train state, recipe
/// and small files, in `num_files` shards of equal bytes. One shard holds whole tensors. Bytes are verified
/// as they are read, block by block: memory does not grow with the checkpoint. The copy names the original as
/// its parent. Throws Error: kUsage when num_files is not 1 to 100,000; kUnusable when the original is
/// damaged; kStorage when it cannot be written. What was written until then is removed.
CheckpointInfo reshard(const CheckpointReader& from, FileOps& files, const std::string& dir, int num_files);

/// Writes `parts`, the shards of a save that is not committed yet, as one shard of whole tensors, `name`, and
/// removes their files. All lie in `folder`; none is called `name`. Throws Error (kUnusable) when a part is
/// not what was written, or when together they are not whole; kStorage when it cannot be written.
WrittenShard join_shards(FileOps& files, const std::string& folder, std::vector<WrittenShard> parts,
                         const std::string& name);

}  // namespace tycho
