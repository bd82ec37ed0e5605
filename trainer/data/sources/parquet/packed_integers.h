// The two ways in which Parquet packs integers: runs for levels and indices, deltas for lengths.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tycho {

// Both classes read front to back; the bytes must outlive them. Both throw Error (kUnusable) for bytes that
// end too early and impossible widths. (https://github.com/apache/parquet-format/blob/master/Encodings.md)

/// Reads runs of one value, and groups of eight packed values (RLE).
class RunReader {
 public:
  /// `bit_width`: bits of a value, 0 to 32.
  RunReader(std::string_view bytes, int bit_width);
  uint32_t next();

 private:
  void next_run();

  std::string_view bytes_;
  int bit_width_;
  uint64_t left_ = 0;  // values left in this run
  bool packed_ = false;
  uint32_t value_ = 0;                    // value of a run of one value
  size_t packed_begin_ = 0, bit_at_ = 0;  // position in a packed run
  size_t at_ = 0;
};

/// Reads differences from one value to the next, in blocks (DELTA_BINARY_PACKED).
class DeltaReader {
 public:
  explicit DeltaReader(std::string_view bytes);
  /// Number of values according to the header.
  uint64_t num_values() const { return num_values_; }
  int64_t next();
  /// Number of bytes read so far, including the rest of the last block once all values are read.
  size_t position() const { return at_; }

 private:
  void next_block();
  void next_miniblock();

  std::string_view bytes_;
  size_t at_ = 0;
  uint64_t num_values_ = 0, num_read_ = 0;
  uint64_t miniblock_values_ = 0, num_miniblocks_ = 0, miniblock_ = 0;
  std::string_view widths_;
  size_t bits_begin_ = 0;      // first bit of the miniblock
  uint64_t in_miniblock_ = 0;  // values read of the miniblock
  int width_ = 0;
  uint64_t value_ = 0, min_delta_ = 0;  // both wrap around, as the format requires
};

}  // namespace tycho
