// What a conversion writes down now and then, so that the next one continues after a kill.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/convert/token_packer.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {

/// The file of a state, in the folder of the first split while it is written.
inline constexpr const char* kConversionState = ".resume";

struct SplitState {
  int64_t documents = 0, bytes = 0, longest_bytes = 0;
  int64_t part_bytes = 0;  // of the document that has begun
  TokenPacker::State packer;
  MdsWriter::State writer;
};

/// After a whole number of chunks, which are the same for the same files and rules.
struct ConversionState {
  int64_t chunks = 0, documents = 0;
  std::vector<SplitState> splits;
};

/// Into `dir`. `key`: of all that the bytes depend on.
void write_conversion_state(FileOps& files, const std::string& dir, const std::string& key,
                            const ConversionState& state);
/// Nothing where there is none, or where it belongs to another conversion or is damaged.
std::optional<ConversionState> read_conversion_state(const std::string& dir, const std::string& key);
void remove_conversion_state(FileOps& files, const std::string& dir);

}  // namespace tycho
