// State that a conversion saves from time to time, so that the next call continues after a kill.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/prepare/split_writer.h"
#include "trainer/data/prepare/token_packer.h"
#include "trainer/data/sources/input_files.h"

namespace tycho {

struct SplitState {
  int64_t documents = 0, bytes = 0, longest_bytes = 0, skipped_rows = 0;
  int64_t part_bytes = 0;     // bytes of the unfinished document
  TokenPacker::State packer;  // for conversations: only the numbers of tokens and samples
  MdsWriter::State writer;
};

/// State of a conversion after a whole number of chunks. Chunks are the same for the same files and rules.
struct ConversionState {
  int64_t file = 0;  // index of the input file that the chunks are counted in
  int64_t chunks = 0, documents = 0;
  std::vector<SplitState> splits;

  int64_t num_shards() const;
};

/// Writes the state into `dir`. `key` identifies everything that the bytes of the data set depend on; see
/// conversion_key.
void write_conversion_state(FileOps& files, const std::string& dir, const std::string& key,
                            const ConversionState& state);
/// Reads the state in `dir`. Returns nothing if there is none, if it belongs to another conversion, or if it
/// is damaged.
std::optional<ConversionState> read_conversion_state(const std::string& dir, const std::string& key);
void remove_conversion_state(FileOps& files, const std::string& dir);

/// Returns a key that is equal for two conversions that write the same bytes. `kind` holds what they depend
/// on in addition to rules and inputs.
std::string conversion_key(const std::string& kind, const SplitRules& rules,
                           const std::vector<InputFile>& inputs);
/// Takes over the work folders of a killed conversion with the same key, and returns its state.
std::optional<ConversionState> adopt_conversion(FileOps& files, const SplitRules& rules,
                                                const std::string& key);

/// Writes the state when there are new shards, at most once in `every_s` seconds.
class StateSaver {
 public:
  StateSaver(FileOps& files, std::string key, double every_s, int64_t num_shards)
      : files_(files), key_(std::move(key)), every_s_(every_s), shards_saved_(num_shards) {}
  void save_if_due(const std::string& dir, int64_t num_shards, const std::function<ConversionState()>& state);

 private:
  FileOps& files_;
  std::string key_;
  double every_s_;
  int64_t shards_saved_;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
};

}  // namespace tycho
