// What the writer and the reader of MDS shards (format version 2 of mosaicml-streaming) agree on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// A column's name and encoding: "tokens", "ndarray:int32".
struct MdsColumn {
  std::string name, encoding;
  bool operator==(const MdsColumn&) const = default;
};

/// Bytes of every value of a column, or nothing when values carry their length. Known: bytes, str, int, the
/// fixed-size scalars (uint8 .. float64), json, ndarray, ndarray:DTYPE, ndarray:DTYPE:SHAPE. Throws Error
/// (kUnusable) otherwise.
std::optional<int64_t> mds_column_size(const MdsColumn& column);

/// Bytes of one element of a NumPy dtype ("int32"); 0 when MDS has no such type.
int64_t mds_dtype_bytes(std::string_view dtype);

/// A one-dimensional array as a value of a column "ndarray:DTYPE": its length, then its elements. Not empty.
std::string encode_mds_array(const void* elements, int64_t count, int64_t element_bytes);

/// A value of a column "int".
std::string encode_mds_int(int64_t value);

/// A one-dimensional array inside a value, which must outlive it.
struct MdsArrayView {
  std::string_view dtype;
  const char* elements = nullptr;  // unaligned
  int64_t count = 0;
};

/// Takes a value of an ndarray column apart. Throws Error (kUnusable) that begins with `place`.
MdsArrayView decode_mds_array(std::string_view encoding, std::string_view value, const std::string& place);

/// JSON as Python's json.dumps(x, sort_keys=True) writes it: the bytes inside shards depend on it.
std::string python_json(const Json& json);

}  // namespace tycho
