// Reads the wire format of Protocol Buffers, field by field.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tycho {

/// One field of a message. The wire type says which value is set: 0 `value` as varint, 1 and 5 `value` as
/// fixed number, 2 `bytes`.
struct ProtobufField {
  uint32_t number = 0;
  int wire_type = 0;
  uint64_t value = 0;
  std::string_view bytes;

  float as_float() const { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
};

/// Reads the fields of a message, which must outlive this object.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  /// Returns the next field; nothing at the end, or if the message is damaged (see damaged()).
  std::optional<ProtobufField> next() {
    ProtobufField field;
    uint64_t tag = 0;
    if (rest_.empty()) return std::nullopt;
    if (!varint(tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return stop();
    field.number = static_cast<uint32_t>(tag >> 3);
    field.wire_type = static_cast<int>(tag & 7);
    switch (field.wire_type) {
      case 0:
        if (!varint(field.value)) return stop();
        break;
      case 1:
      case 5:
        if (!fixed(field.wire_type == 1 ? 8 : 4, field.value)) return stop();
        break;
      case 2: {
        uint64_t size = 0;
        if (!varint(size) || size > rest_.size()) return stop();
        field.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        break;
      }
      default: return stop();
    }
    return field;
  }

  bool damaged() const { return damaged_; }
  /// Number of bytes that have not been read.
  size_t left() const { return rest_.size(); }

 private:
  std::optional<ProtobufField> stop() {
    damaged_ = true;
    return std::nullopt;
  }
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool fixed(size_t size, uint64_t& value) {
    if (rest_.size() < size) return false;
    for (size_t i = 0; i < size; ++i)
      value |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  bool damaged_ = false;
};

}  // namespace tycho
