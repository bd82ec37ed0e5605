// Compares every length with the remaining bytes before reading.
#include "trainer/data/sources/parquet/thrift.h"

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int kMostDepth = 32;

[[noreturn]] void malformed(const char* what) { fail(ExitCode::kUnusable, "[parquet] {}", what); }

}  // namespace

uint8_t ThriftReader::read_byte() {
  if (at_ == bytes_.size()) malformed("a header ends too early");
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t ThriftReader::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = read_byte();
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  malformed("a number in a header has more than 64 bits");
}

int64_t ThriftReader::read_int() {
  const uint64_t value = read_varint();  // 0, -1, 1, -2, 2 ...
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

std::string_view ThriftReader::read_binary() {
  const uint64_t size = read_varint();
  if (size > bytes_.size() - at_) malformed("a header ends too early");
  at_ += size;
  return bytes_.substr(at_ - size, size);
}

void ThriftReader::read_struct(const std::function<bool(int, Type)>& field) {
  if (++depth_ > kMostDepth) malformed("a header is nested too deeply");
  int64_t id = 0;
  for (uint8_t head; (head = read_byte()) != 0;) {
    const auto type = static_cast<Type>(head & 0xF);
    id = head >> 4 != 0 ? id + (head >> 4) : read_int();
    if (id < INT16_MIN || id > INT16_MAX) malformed("a header has a field with an impossible number");
    if (!field(static_cast<int>(id), type)) skip(type);
  }
  --depth_;
}

void ThriftReader::read_list(Type type, const std::function<void()>& item) {
  const uint8_t head = read_byte();
  const uint64_t size = head >> 4 == 15 ? read_varint() : head >> 4;
  if (size > bytes_.size() - at_) malformed("a header ends too early");  // an item has a byte at least
  if (size > 0 && static_cast<Type>(head & 0xF) != type)
    malformed("a list in a header has items of another type");
  for (uint64_t i = 0; i < size; ++i) item();
}

void ThriftReader::skip(Type type) {
  switch (type) {
    case Type::kTrue:
    case Type::kFalse: return;  // the value is in the type
    case Type::kByte: read_byte(); return;
    case Type::kI16:
    case Type::kI32:
    case Type::kI64: read_varint(); return;
    case Type::kDouble:
      if (bytes_.size() - at_ < 8) malformed("a header ends too early");
      at_ += 8;
      return;
    case Type::kBinary: read_binary(); return;
    case Type::kStruct: read_struct([](int, Type) { return false; }); return;
    case Type::kList:
    case Type::kSet: {
      if (++depth_ > kMostDepth) malformed("a header is nested too deeply");
      const uint8_t head = read_byte();
      const auto item = static_cast<Type>(head & 0xF);
      const uint64_t size = head >> 4 == 15 ? read_varint() : head >> 4;
      if (size > bytes_.size() - at_) malformed("a header ends too early");
      const bool is_bool = item == Type::kTrue || item == Type::kFalse;  // in lists, a byte each
      for (uint64_t i = 0; i < size; ++i) is_bool ? void(read_byte()) : skip(item);
      --depth_;
      return;
    }
    case Type::kMap: break;  // Parquet has none
  }
  malformed("a header has a value of an unknown type");
}

}  // namespace tycho
