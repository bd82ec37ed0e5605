// Thrift's compact protocol, in the subset that Parquet's footer and page headers use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace tycho {

/// Reads values in the order in which they were written. Owned by one thread; the bytes must outlive it.
/// Throws Error (kUnusable) for bytes that end too early, lengths beyond them, and structs nested deeper than
/// 32. (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md)
class ThriftReader {
 public:
  enum class Type {
    kTrue = 1,
    kFalse,
    kByte,
    kI16,
    kI32,
    kI64,
    kDouble,
    kBinary,
    kList,
    kSet,
    kMap,
    kStruct
  };

  explicit ThriftReader(std::string_view bytes) : bytes_(bytes) {}

  /// Calls `field` with the number and type of every field of a struct. If `field` returns false instead of
  /// reading the value, the value is skipped.
  void read_struct(const std::function<bool(int id, Type type)>& field);
  /// Calls `item` for every item of a list. Throws Error if the list has another type.
  void read_list(Type type, const std::function<void()>& item);
  /// Reads a value of one of the types kByte to kI64.
  int64_t read_int();
  std::string_view read_binary();
  /// Number of bytes read so far.
  size_t position() const { return at_; }

 private:
  uint8_t read_byte();
  uint64_t read_varint();
  void skip(Type type);

  std::string_view bytes_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace tycho
