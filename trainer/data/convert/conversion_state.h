// What a conversion writes down now and then, so that the next one continues after a kill.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/convert/split_writer.h"
#include "trainer/data/convert/token_packer.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/text/input_files.h"

namespace tycho {

/// The file of a state, in the folder of the first split while it is written.
inline constexpr const char* kConversionState = ".resume";

struct SplitState {
  int64_t documents = 0, bytes = 0, longest_bytes = 0, skipped_rows = 0;
  int64_t part_bytes = 0;     // of the document that has begun
  TokenPacker::State packer;  // of conversations: their tokens and samples
  MdsWriter::State writer;
};

/// After a whole number of chunks, which are the same for the same files and rules.
struct ConversionState {
  int64_t chunks = 0, documents = 0;
  std::vector<SplitState> splits;

  int64_t num_shards() const;
};

/// Into `dir`. `key`: of all that the bytes depend on.
void write_conversion_state(FileOps& files, const std::string& dir, const std::string& key,
                            const ConversionState& state);
/// Nothing where there is none, or where it belongs to another conversion or is damaged.
std::optional<ConversionState> read_conversion_state(const std::string& dir, const std::string& key);
void remove_conversion_state(FileOps& files, const std::string& dir);

/// Equal for two conversions that write the same bytes. `kind`: what else they depend on.
std::string conversion_key(const std::string& kind, const SplitRules& rules,
                           const std::vector<InputFile>& inputs);
/// What a conversion of the same key has left when it was killed, in the work folders of this process.
std::optional<ConversionState> adopt_conversion(FileOps& files, const SplitRules& rules,
                                                const std::string& key);

/// Writes a state down when there are new shards, at most once in `every_s` seconds.
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
