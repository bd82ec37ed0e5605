// Bits are taken from the low end of each byte first.
#include "trainer/data/sources/parquet/packed_integers.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace tycho {
namespace {

[[noreturn]] void cut_off() { fail(ExitCode::kUnusable, "[parquet] packed numbers end too early"); }
[[noreturn]] void impossible() {
  fail(ExitCode::kUnusable, "[parquet] packed numbers have an impossible width");
}

uint64_t varint_at(std::string_view bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at == bytes.size()) cut_off();
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  impossible();
}

uint64_t zigzag_at(std::string_view bytes, size_t& at) {
  const uint64_t value = varint_at(bytes, at);
  return value >> 1 ^ (~(value & 1) + 1);
}

/// Returns `width` bits starting at bit `begin`. Requires that `bytes` contains them.
uint64_t bits_at(std::string_view bytes, size_t begin, int width) {
  uint64_t value = 0;
  for (int taken = 0; taken < width;) {
    const size_t bit = begin + static_cast<size_t>(taken);
    const int from = static_cast<int>(bit % 8), count = std::min(8 - from, width - taken);
    const uint64_t part = static_cast<uint8_t>(bytes[bit / 8]) >> from & ((1U << count) - 1);
    value |= part << taken;
    taken += count;
  }
  return value;
}

}  // namespace

RunReader::RunReader(std::string_view bytes, int bit_width) : bytes_(bytes), bit_width_(bit_width) {
  if (bit_width < 0 || bit_width > 32) impossible();
}

void RunReader::next_run() {
  const uint64_t head = varint_at(bytes_, at_);
  packed_ = (head & 1) != 0;
  left_ = head >> 1;
  const size_t rest = bytes_.size() - at_, width = static_cast<size_t>(bit_width_);
  if (packed_) {
    // A group of eight values has `width` bytes. The last group of a page may end after its last value.
    packed_begin_ = at_;
    bit_at_ = 0;
    const uint64_t groups = width == 0 ? left_ : std::min<uint64_t>(left_, (rest + width - 1) / width);
    left_ =
        width == 0 ? std::min<uint64_t>(left_, UINT64_MAX / 8) * 8 : std::min(groups * 8, rest * 8 / width);
    at_ += std::min<uint64_t>(rest, groups * width);
    return;
  }
  const size_t value_bytes = (width + 7) / 8;
  if (rest < value_bytes) cut_off();
  value_ = static_cast<uint32_t>(bits_at(bytes_, 8 * at_, static_cast<int>(8 * value_bytes)));
  at_ += value_bytes;
}

uint32_t RunReader::next() {
  while (left_ == 0) {
    if (at_ == bytes_.size()) cut_off();
    next_run();
  }
  --left_;
  if (!packed_) return value_;
  const auto value = static_cast<uint32_t>(bits_at(bytes_, 8 * packed_begin_ + bit_at_, bit_width_));
  bit_at_ += static_cast<size_t>(bit_width_);
  return value;
}

DeltaReader::DeltaReader(std::string_view bytes) : bytes_(bytes) {
  const uint64_t block_values = varint_at(bytes_, at_);
  num_miniblocks_ = varint_at(bytes_, at_);
  num_values_ = varint_at(bytes_, at_);
  value_ = zigzag_at(bytes_, at_);
  if (num_miniblocks_ == 0 || num_miniblocks_ > bytes.size() || block_values > UINT32_MAX ||
      block_values % num_miniblocks_ != 0 || block_values / num_miniblocks_ % 8 != 0 || block_values == 0)
    impossible();
  miniblock_values_ = block_values / num_miniblocks_;
  miniblock_ = num_miniblocks_;
  in_miniblock_ = miniblock_values_;
}

void DeltaReader::next_block() {
  min_delta_ = zigzag_at(bytes_, at_);
  if (bytes_.size() - at_ < num_miniblocks_) cut_off();
  widths_ = bytes_.substr(at_, num_miniblocks_);
  at_ += num_miniblocks_;
  miniblock_ = 0;
}

void DeltaReader::next_miniblock() {
  if (miniblock_ == num_miniblocks_) next_block();
  width_ = static_cast<uint8_t>(widths_[miniblock_++]);
  if (width_ > 64) impossible();
  const uint64_t size = miniblock_values_ / 8 * static_cast<uint64_t>(width_);
  if (bytes_.size() - at_ < size) cut_off();
  bits_begin_ = 8 * at_;
  at_ += size;
  in_miniblock_ = 0;
}

int64_t DeltaReader::next() {
  if (num_read_ == num_values_) cut_off();
  if (num_read_++ > 0) {
    if (in_miniblock_ == miniblock_values_) next_miniblock();
    value_ +=
        min_delta_ + bits_at(bytes_, bits_begin_ + in_miniblock_++ * static_cast<uint64_t>(width_), width_);
  }
  return static_cast<int64_t>(value_);
}

}  // namespace tycho
