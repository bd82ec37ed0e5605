// Contents of index.json of a data set of mosaicml-streaming.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/mds/line_format.h"
#include "trainer/data/mds/mds_format.h"
#include "trainer/data/storage/compression.h"

namespace tycho {

/// The compressed file of a shard. Only this file may exist until a process decompresses it.
struct MdsZip {
  std::string path;
  int64_t bytes = 0;
  std::string hash_name, hash;  // checksum of the compressed file
  CompressionKind kind = CompressionKind::kZstd;
};

struct MdsShard {
  std::string path;                // file of the raw bytes, which may have to be decompressed to it
  int64_t samples = 0, bytes = 0;  // counts of the raw file
  std::string hash_name, hash;  // checksum of the raw file; "" when neither index.json nor tycho.json records
                                // one
  std::optional<MdsZip> zip;
  std::vector<MdsColumn> columns;
  std::vector<std::optional<int64_t>> column_sizes;
  std::optional<LineFormat> lines;  // format of a shard of text; none: MDS
  size_t offsets_file = 0;          // with `lines`: index in MdsIndex::offset_files

  // Path and size of the file that was written: the compressed one where there is one.
  const std::string& stored_path() const { return zip ? zip->path : path; }
  int64_t stored_bytes() const { return zip ? zip->bytes : bytes; }
  /// True if changed bytes would be noticed.
  bool has_checksum() const { return !hash.empty() || (zip && !zip->hash.empty()); }
};

/// Contents of index.json, checked for sense but not against the shards.
struct MdsIndex {
  std::string dir;
  std::vector<MdsShard> shards;
  /// Files that hold the offsets of samples of shards of text; each begins as an MDS shard does. Their
  /// columns are left empty.
  std::vector<MdsShard> offset_files;
  std::vector<int64_t> first_sample;  // first sample of each shard; the last entry is the number of all
                                      // samples
  std::vector<std::string> hashes;    // names of the checksums that index.json records

  int64_t num_samples() const { return first_sample.back(); }
  int64_t num_bytes() const;
};

/// Returns an index with every file as a shard: the shards of `index`, then its offset files. For code that
/// handles files: sources and caches.
MdsIndex with_offset_files(const MdsIndex& index);

/// Returns the number of samples of each shard.
std::vector<uint32_t> shard_sizes(const MdsIndex& index);

/// Reads <dir>/index.json with shards of the formats mds, json, xsv, csv and tsv. Compressed shards will be
/// decompressed next to the compressed file, as mosaicml-streaming does, or into a folder of this data set in
/// `decompress_dir`. Throws Error (kUnusable) naming the file and the field.
MdsIndex read_mds_index(const std::string& dir, const std::string& decompress_dir = "");

}  // namespace tycho
