// Decompresses the compressed file of a shard.
#pragma once
#include <span>
#include <stop_token>

#include "trainer/data/mds/mds_index.h"

namespace tycho {

// For shards with a `zip`; may be called from any thread. The compressed file is first compared with the
// index (its size, and its checksum if there is one), and must give exactly shard.bytes bytes. Otherwise the
// functions throw Error (kUnusable) naming the file.

/// Makes the file shard.path unless it exists, has shard.bytes bytes and is not older than the compressed
/// file. ShardSource::verify checks the contents. Creates missing folders; keeps the compressed file. One
/// process decompresses while others wait; a kill leaves at most shard.path + ".part", which the next process
/// takes over. Throws Error: kStorage when the file cannot be written, kTerminated on a stop.
void decompress_shard(const MdsShard& shard, const std::stop_token& stop);

/// Removes leftovers of killed processes in the folder of `shard`, for all shards of `index`.
void sweep_left_overs(const MdsIndex& index, const MdsShard& shard);

/// True if an earlier run, another process or mosaicml-streaming has made that file.
bool is_decompressed(const MdsShard& shard);

/// Decompresses a shard into memory of shard.bytes bytes. Throws Error (kTerminated) on a stop.
void decompress_shard_into(const MdsShard& shard, std::span<char> raw, const std::stop_token& stop);

/// Compares the compressed file with the index.
void check_zip(const MdsShard& shard);

}  // namespace tycho
