// Reads MDS data sets: index.json and raw shards.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
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

/// Random access to samples. Owned by one thread. Every Error has the code kUnusable and names shard and
/// sample.
class MdsReader {
 public:
  /// Checks that every shard is there with the size and the number of samples that the index says.
  explicit MdsReader(MdsIndex index);
  ~MdsReader();
  MdsReader(const MdsReader&) = delete;

  const MdsIndex& index() const { return index_; }

  /// The values of one sample, in column order, valid until the next call. The shard's checksum is compared
  /// when it is read for the first time.
  const std::vector<std::string_view>& read(int64_t sample);

  /// "sample 17 of /data/train/shard.00003.mds", for messages.
  std::string name_of(int64_t sample) const;

  /// Position of a column in what read() gives. Throws Error (kUnusable) that lists the columns there are.
  size_t column(std::string_view name) const;

 private:
  size_t shard_of(int64_t sample) const;
  int open_shard(size_t shard);
  void verify_shard(size_t shard, int fd);
  void split_sample(const MdsShard& shard, int64_t sample);

  MdsIndex index_;
  std::vector<int> descriptors_;  // by shard; -1: closed
  int num_open_ = 0;
  std::vector<bool> verified_;
  std::string data_;
  std::vector<std::string_view> values_;
};

}  // namespace tycho
