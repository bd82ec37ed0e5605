// Writes one shard at the speed of the disk: a thread copies and hashes the next block while the last one is
// written.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"

namespace tycho {

/// The contents of a shard: its record for COMMIT, and the position of each tensor.
struct WrittenShard {
  FileRecord file;
  std::vector<TensorRecord> tensors;  // one per tensor or piece that was written
};

/// Data starts on a page, for readers that map it.
inline constexpr int64_t kDataAlignment = 4096;

/// Returns "rank-00003.safetensors".
std::string rank_file_name(int rank);

/// Creates dir/name as a safetensors file with these tensors or pieces of tensors, wider elements first so
/// that each stays aligned. Durable when it returns, apart from the folder's own entry. Throws Error
/// (kStorage) on any failure, and whatever a tensor's `fill` throws.
WrittenShard write_shard(FileOps& files, const std::string& dir, const std::string& name,
                         const std::vector<TensorBytes>& tensors, int64_t data_alignment = kDataAlignment);

/// Adds the shards' files and tensors to a manifest. A tensor may have pieces in several shards; its dtype
/// and shape must be the same in all.
void add_shards(std::vector<WrittenShard> shards, Manifest& manifest);

/// Creates dir/name with this text, as durable as write_shard.
FileRecord write_text(FileOps& files, const std::string& dir, const std::string& name,
                      const std::string& text);

}  // namespace tycho
