// What index.json of an MDS data set says.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/mds/mds_format.h"

namespace tycho {

struct MdsShard {
  std::string path;
  int64_t samples = 0, bytes = 0;
  std::string xxh3_128;  // of the whole file; "" when neither index.json nor tycho.json records it
  std::vector<MdsColumn> columns;
  std::vector<std::optional<int64_t>> column_sizes;
};

/// What index.json says, checked for sense but not against the shards.
struct MdsIndex {
  std::string dir;
  std::vector<MdsShard> shards;
  std::vector<int64_t> first_sample;  // of each shard, and at the end the number of all samples
  std::vector<std::string> hashes;    // names of the checksums that index.json records

  int64_t num_samples() const { return first_sample.back(); }
  int64_t num_bytes() const;
};

/// Reads <dir>/index.json. Throws Error (kUnusable) naming the file and the field.
MdsIndex read_mds_index(const std::string& dir);

}  // namespace tycho
