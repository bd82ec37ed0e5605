// Messages in Protocol Buffers' wire format, written field by field: those of trackers are a handful, and
// generating code for them would need a compiler of their own.
// https://protobuf.dev/programming-guides/encoding
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tycho {

/// A message. Call its functions in the order of the field numbers.
class WireMessage {
 public:
  WireMessage& integer(int field, int64_t value);
  WireMessage& real(int field, double value);
  WireMessage& single(int field, float value);
  WireMessage& text(int field, std::string_view bytes);
  WireMessage& message(int field, const WireMessage& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  std::string bytes_;
};

/// Returns `size` bytes of the value, lowest first.
std::string little_endian(uint64_t value, int size);

}  // namespace tycho
