// Header of NumPy's .npy files.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tycho {

/// Position and type of the elements of a one-dimensional array of integers.
struct NumpyHeader {
  std::string_view dtype;  // a name of mds_format.h: "uint16", "int32" ...
  int64_t num_elements = 0;
  int64_t bytes = 0;  // of the header: where the elements begin
};

/// True if the file begins with the magic bytes of .npy. Throws Error (kUnusable) if it cannot be read.
bool has_numpy_header(const std::string& path);

/// Reads the header that numpy.save writes, of version 1, 2 or 3. Throws Error (kUnusable) that names the
/// file for damaged headers and for arrays that are not little-endian integers of one dimension.
NumpyHeader read_numpy_header(const std::string& path);

}  // namespace tycho
