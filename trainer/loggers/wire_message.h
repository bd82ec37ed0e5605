// Messages in Protocol Buffers' wire format, written field by field: those of trackers are a handful, and
// generating code for them would need a compiler of their own.
// https://protobuf.dev/programming-guides/encoding
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tycho {

/// Fields are written in the order of the calls, which is the order of their numbers in all our messages.
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

/// `size` bytes of the value, the lowest first.
std::string little_endian(uint64_t value, int size);

}  // namespace tycho
