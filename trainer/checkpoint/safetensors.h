// The safetensors container: a length, a JSON header, contiguous tensor bytes. Torch-free.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
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
  int64_t data_start = 0;                       // offset of the data in the file
};

/// Returns the bytes of one element; 0 for an unknown dtype.
int64_t safetensors_dtype_bytes(std::string_view dtype);
/// Returns the product of shape and element size. Throws Error (kUnusable) tagged with `place` when it is
/// unknown or overflows.
int64_t safetensors_num_bytes(std::string_view dtype, const std::vector<int64_t>& shape,
                              std::string_view place);

/// Returns the bytes before the data: length and header, padded with spaces to a multiple of `alignment`,
/// which must be a multiple of 8. Throws Error (kFailure) unless entries are contiguous from 0.
std::string safetensors_prefix(const std::vector<SafetensorsEntry>& entries,
                               const std::map<std::string, std::string>& metadata, int64_t alignment = 8);

/// Reads a header strictly: at most 100,000,000 bytes and 1 M tensors; names of at most 1 KiB of clean UTF-8,
/// without duplicates; spans contiguous from 0, without holes or overlap, ending at the end of the file; each
/// span as long as dtype and shape say; __metadata__ from string to string. Throws Error (kUnusable) tagged
/// with `place`.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t num_file_bytes,
                                           const std::string& place);
/// Reads the header of a file on disk.
SafetensorsHeader read_safetensors_header(const std::string& path);
/// Reads the header of a file of `num_file_bytes` through `read`, which copies n bytes from `offset` on.
SafetensorsHeader read_safetensors_header(
    const std::string& place, int64_t num_file_bytes,
    const std::function<void(int64_t offset, char* to, size_t n)>& read);

}  // namespace tycho
