// Writes fields in Protocol Buffers' wire format.
#include "trainer/loggers/wire_message.h"

#include <bit>

namespace tycho {
namespace {

constexpr uint64_t kVarint = 0, kEightBytes = 1, kLengthAndBytes = 2, kFourBytes = 5;

uint64_t tag(int field, uint64_t type) { return static_cast<uint64_t>(field) << 3 | type; }

}  // namespace

std::string little_endian(uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

void WireMessage::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
  bytes_ += static_cast<char>(value);
}

WireMessage& WireMessage::integer(int field, int64_t value) {
  varint(tag(field, kVarint));
  varint(static_cast<uint64_t>(value));
  return *this;
}

WireMessage& WireMessage::real(int field, double value) {
  varint(tag(field, kEightBytes));
  bytes_ += little_endian(std::bit_cast<uint64_t>(value), 8);
  return *this;
}

WireMessage& WireMessage::single(int field, float value) {
  varint(tag(field, kFourBytes));
  bytes_ += little_endian(std::bit_cast<uint32_t>(value), 4);
  return *this;
}

WireMessage& WireMessage::text(int field, std::string_view bytes) {
  varint(tag(field, kLengthAndBytes));
  varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

}  // namespace tycho
