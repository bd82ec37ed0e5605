// Checks every length before allocating memory for it.
#include "trainer/rendezvous/frames.h"

#include <bit>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr size_t kLengthBytes = 4;

}  // namespace

WireWriter& WireWriter::number(uint64_t value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  return *this;
}

WireWriter& WireWriter::f64(double value) { return u64(std::bit_cast<uint64_t>(value)); }

WireWriter& WireWriter::text(std::string_view text) {
  u32(static_cast<uint32_t>(text.size()));
  bytes_.append(text);
  return *this;
}

std::string_view WireReader::take(size_t num_bytes) {
  TYCHO_CHECK(num_bytes <= rest_.size(), "[ranks] a message ends after {} of {} bytes", rest_.size(),
              num_bytes);
  const std::string_view taken = rest_.substr(0, num_bytes);
  rest_.remove_prefix(num_bytes);
  return taken;
}

uint64_t WireReader::number(int num_bytes) {
  const std::string_view bytes = take(static_cast<size_t>(num_bytes));
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

double WireReader::f64() { return std::bit_cast<double>(u64()); }

std::string WireReader::text(size_t max_bytes) {
  const size_t num_bytes = u32();
  TYCHO_CHECK(num_bytes <= max_bytes, "[ranks] a message has a text of {} bytes, at most {} are allowed",
              num_bytes, max_bytes);
  return std::string(take(num_bytes));
}

void WireReader::end() const {
  TYCHO_CHECK(rest_.empty(), "[ranks] a message has {} bytes too many", rest_.size());
}

std::string frame_bytes(uint8_t kind, std::string_view body) {
  WireWriter writer;
  writer.u32(static_cast<uint32_t>(body.size() + 1)).u8(kind);
  return writer.bytes() + std::string(body);
}

size_t FrameReader::wanted() const { return (body_bytes_ == 0 ? kLengthBytes : body_bytes_) - bytes_.size(); }

std::optional<Frame> FrameReader::add(std::string_view bytes) {
  TYCHO_CHECK(bytes.size() <= wanted(), "[ranks] a frame expected {} bytes, got {}", wanted(), bytes.size());
  bytes_.append(bytes);
  if (wanted() > 0) return std::nullopt;
  if (body_bytes_ == 0) {
    const size_t length = WireReader(bytes_).u32();
    TYCHO_CHECK(length >= 1 && length <= max_bytes_, "[ranks] a frame has {} bytes, from 1 to {} are allowed",
                length, max_bytes_);
    body_bytes_ = length;
    bytes_.clear();
    return std::nullopt;
  }
  Frame frame{static_cast<uint8_t>(bytes_[0]), bytes_.substr(1)};
  bytes_.clear();
  body_bytes_ = 0;
  return frame;
}

}  // namespace tycho
