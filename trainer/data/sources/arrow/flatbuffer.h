// Flatbuffers, in the subset that Arrow's messages use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace tycho {

/// A table inside a flatbuffer. Fields are numbered in the order of the schema; fields that are absent have a
/// default. The bytes must outlive the table. Every access is checked: throws Error (kUnusable) "[arrow] ..."
/// for places outside the bytes. (https://flatbuffers.dev/internals/)
class FlatTable {
 public:
  /// The root table of a buffer.
  static FlatTable root(std::string_view bytes);

  template <class T>
  T scalar(int field, T usual) const {
    const size_t at = place_of(field);
    if (at == 0) return usual;
    T value;
    std::memcpy(&value, bytes_at(at, sizeof value).data(), sizeof value);
    return value;
  }
  /// Returns "" for an absent text.
  std::string_view text(int field) const;
  std::optional<FlatTable> table(int field) const;
  std::vector<FlatTable> tables(int field) const;
  /// Returns the bytes of a vector of scalars or structs of `item_bytes` each; "" if absent.
  std::string_view items(int field, size_t item_bytes) const;

 private:
  FlatTable(std::string_view bytes, size_t at);
  /// Returns the position of a field's value; 0 if the table lacks the field.
  size_t place_of(int field) const;
  std::string_view bytes_at(size_t at, size_t count) const;
  /// Returns the position that the offset at `at` points to.
  size_t target_of(size_t at) const;

  std::string_view bytes_;
  size_t at_, vtable_ = 0, vtable_bytes_ = 0;
};

}  // namespace tycho
