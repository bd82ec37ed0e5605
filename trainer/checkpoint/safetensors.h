// The safetensors container: a length, a JSON header, contiguous tensor bytes. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// One entry of a header. Offsets count from the start of the data.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;           // "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;  // empty for a scalar
  int64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        // in the order of their bytes
  std::map<std::string, std::string> metadata;  // __metadata__
  int64_t data_start = 0;                       // of byte 0 of the data, in the file
};

/// Bytes of one element; 0 for a name that the format does not know.
int64_t safetensors_dtype_bytes(std::string_view dtype);
/// Product of shape and element size. Throws Error (kUnusable) tagged with `place` when it is unknown or
/// overflows.
int64_t safetensors_num_bytes(std::string_view dtype, const std::vector<int64_t>& shape,
                              std::string_view place);

/// The bytes before the data: length and header, padded with spaces to a multiple of `alignment` (itself one
/// of 8). Entries must lie one after the other from 0; a wrong one is an Error (kFailure).
std::string safetensors_prefix(const std::vector<SafetensorsEntry>& entries,
                               const std::map<std::string, std::string>& metadata, int64_t alignment = 8);

/// Reads a header strictly: at most 100,000,000 bytes and 1 M tensors; names of at most 1 KiB of clean UTF-8,
/// none twice; spans contiguous from 0, without holes or overlap, ending at the end of the file; each span as
/// long as dtype and shape say; __metadata__ from string to string. Throws Error (kUnusable) tagged with
/// `place`.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t num_file_bytes,
                                           const std::string& place);
/// The header of a file on disk.
SafetensorsHeader read_safetensors_header(const std::string& path);

}  // namespace tycho
