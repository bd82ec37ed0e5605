// Arrays as mosaicml-streaming encodes them, for tests.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/mds/mds_format.h"

namespace tycho::testing {

/// Encodes an array for a column of an encoding that allows this dtype and shape.
inline std::string mds_array_bytes(std::string_view encoding, std::string_view dtype,
                                   const std::vector<int64_t>& shape, const void* elements) {
  const MdsArrayEncoding fixed = mds_array_encoding(encoding);
  std::string bytes;
  for (int code = 0; fixed.dtype.empty() && bytes.empty() && code < 256; ++code)
    if (mds_dtype_name(code) == dtype) bytes += static_cast<char>(code);
  int64_t count = 1;
  const int64_t most = *std::max_element(shape.begin(), shape.end());
  const int width_code = most < 1 << 8 ? 0 : most < 1 << 16 ? 1 : most < int64_t{1} << 32 ? 2 : 3;
  if (fixed.shape.empty()) bytes += static_cast<char>(std::ssize(shape) << 2 | width_code);
  for (const int64_t dim : shape) {
    if (fixed.shape.empty()) bytes += bytes_of_number(dim).substr(0, size_t{1} << width_code);
    count *= dim;
  }
  return bytes.append(static_cast<const char*>(elements),
                      static_cast<size_t>(count * mds_dtype_bytes(dtype)));
}

}  // namespace tycho::testing
