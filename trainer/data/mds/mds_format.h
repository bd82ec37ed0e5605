// Format of MDS shards (version 2 of mosaicml-streaming), shared by the writer and the reader.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// Name and encoding of a column: "tokens", "ndarray:int32".
struct MdsColumn {
  std::string name, encoding;
  bool operator==(const MdsColumn&) const = default;
};

/// Returns the bytes of every value of a column, or nothing when values carry their length. Knows all
/// encodings of mosaicml-streaming 0.13 (bytes, str, int, uint8 .. float64, str_int, str_float, str_decimal,
/// json, ndarray, ndarray:DTYPE, ndarray:DTYPE:SHAPE, jpeg, png, pil, jpeg_array, jpegarray, list[jpeg],
/// list[png], list[pil]) except pkl: reading a pickle can run any program. Throws Error (kUnusable) for
/// others.
std::optional<int64_t> mds_column_size(const MdsColumn& column);

/// Returns the bytes of one element of a NumPy dtype ("int32"); 0 when MDS has no such type.
int64_t mds_dtype_bytes(std::string_view dtype);

/// Returns the name of the dtype with this code in values of the encoding "ndarray"; "" when there is none.
std::string_view mds_dtype_name(int code);

/// Parts of a valid encoding "ndarray:int32:2,3". Parts that the encoding does not fix are empty.
struct MdsArrayEncoding {
  std::string_view dtype;
  std::vector<int64_t> shape;
};
MdsArrayEncoding mds_array_encoding(std::string_view encoding);
bool is_mds_array(std::string_view encoding);

/// Encodes a one-dimensional array for a column "ndarray:DTYPE": its length, then its elements. Requires that
/// it is not empty.
std::string encode_mds_array(const void* elements, int64_t count, int64_t element_bytes);

/// View of a one-dimensional array inside a value, which must outlive it.
struct MdsArrayView {
  std::string_view dtype;
  const char* elements = nullptr;  // unaligned
  int64_t count = 0;
};

/// Decodes a value of an ndarray column. Throws Error (kUnusable) that begins with `place`.
MdsArrayView decode_mds_array(std::string_view encoding, std::string_view value, const std::string& place);

/// Writes JSON as Python's json.dumps does, with or without sort_keys: the bytes inside shards depend on it.
enum class JsonKeys { kSorted, kInOrder };
std::string python_json(const Json& json, JsonKeys keys = JsonKeys::kSorted);

/// Writes a number as Python's repr does: "1e+16", "0.1", "2.0", "inf".
std::string python_float(double value);

}  // namespace tycho
