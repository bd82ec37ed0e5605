// From the compressed file of a shard to its raw bytes.
#pragma once
#include <span>
#include <stop_token>

#include "trainer/data/mds/mds_index.h"

namespace tycho {

// For shards with a `zip`; may be called from any thread. The compressed file is compared with the index
// first (its size, and its checksum when there is one), and must give exactly shard.bytes bytes. Error
// (kUnusable) otherwise, naming the file.

/// Makes the file shard.path unless it is there, has shard.bytes bytes and is not older than the compressed
/// file. What is in it is for ShardSource::verify. Folders that are missing are made. The compressed file
/// stays. One process does it, the others wait for it; a kill leaves at most shard.path + ".part", which the
/// next one takes over. Error: kStorage when it cannot be written, kTerminated on a stop.
void decompress_shard(const MdsShard& shard, const std::stop_token& stop);

/// Removes what killed processes have left of shards of `index` beside `shard`.
void sweep_left_overs(const MdsIndex& index, const MdsShard& shard);

/// Whether there is such a file of an earlier run, another process or mosaicml-streaming.
bool is_decompressed(const MdsShard& shard);

/// Decompresses it into memory of shard.bytes bytes. Throws Error (kTerminated) on a stop.
void decompress_shard_into(const MdsShard& shard, std::span<char> raw, const std::stop_token& stop);

/// Compares the compressed file with the index.
void check_zip(const MdsShard& shard);

}  // namespace tycho
