// The header is a Python dictionary as text: {'descr': '<u2', 'fortran_order': False, 'shape': (87,), }.
#include "trainer/data/token_files/numpy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

constexpr std::string_view kNumpyMagic = "\x93NUMPY";
constexpr int64_t kFixedBytes = 10;            // magic, version, the length in version 1
constexpr int64_t kMostHeaderBytes = 1 << 20;  // of a dictionary that describes one dimension

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kDtypes = {{{"<u2", "uint16"},
                                                                                   {"<u4", "uint32"},
                                                                                   {"<i4", "int32"},
                                                                                   {"<i8", "int64"},
                                                                                   {"<u8", "uint64"},
                                                                                   {"<i2", "int16"},
                                                                                   {"|u1", "uint8"},
                                                                                   {"|i1", "int8"}}};

int64_t bytes_of_file(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path, error.message());
  return static_cast<int64_t>(bytes);
}

/// Returns the value behind a key, up to `end`, without spaces; "" where the dictionary lacks the key.
std::string_view value_behind(std::string_view text, std::string_view key, std::string_view begin,
                              std::string_view end) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (!text.starts_with(begin)) return "";
  text.remove_prefix(begin.size());
  return text.substr(0, std::min(text.find(end), text.size()));
}

/// Returns the dictionary, and the bytes before the elements.
std::pair<std::string, int64_t> read_dictionary(const std::string& path) {
  const int64_t file_bytes = bytes_of_file(path);
  std::array<unsigned char, 12> fixed{};
  int64_t begin = kFixedBytes, length = -1;
  if (has_numpy_header(path) && file_bytes >= std::ssize(fixed)) {
    read_exactly(path, 0, fixed.data(), fixed.size());
    const int version = fixed[6];
    length = fixed[8] | fixed[9] << 8;
    if (version == 2 || version == 3) {
      begin = std::ssize(fixed);
      length |= int64_t{fixed[10]} << 16 | int64_t{fixed[11]} << 24;
    } else if (version != 1) {
      fail(ExitCode::kUnusable,
           "[data] {} expected version 1, 2 or 3 of NumPy's format, got {}; save it again", path, version);
    }
  }
  if (length < 0 || length > kMostHeaderBytes || begin + length > file_bytes)
    fail(ExitCode::kUnusable,
         "[data] {} expected the whole header of a NumPy array, got a part; copy it again", path);
  std::string dictionary(static_cast<size_t>(length), '\0');
  read_exactly(path, begin, dictionary.data(), dictionary.size());
  return {std::move(dictionary), begin + length};
}

}  // namespace

bool has_numpy_header(const std::string& path) {
  std::array<char, kNumpyMagic.size()> magic{};
  if (bytes_of_file(path) < std::ssize(magic)) return false;
  read_exactly(path, 0, magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == kNumpyMagic;
}

NumpyHeader read_numpy_header(const std::string& path) {
  const auto [dictionary, bytes] = read_dictionary(path);
  NumpyHeader header{.bytes = bytes};
  const std::string_view descr = value_behind(dictionary, "'descr':", "'", "'");
  const auto* const found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& dtype) { return dtype.first == descr; });
  if (found == kDtypes.end())
    fail(ExitCode::kUnusable,
         "[data] {} expected an array of little-endian integers, got NumPy's type \"{}\"; save the tokens as "
         "uint16 or uint32",
         path, descr);
  header.dtype = found->second;
  const std::string_view shape = value_behind(dictionary, "'shape':", "(", ")");
  const std::string_view number = shape.substr(0, shape.find(','));
  const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), header.num_elements);
  const bool is_number = problem == std::errc() && end == number.data() + number.size();
  if (!is_number || header.num_elements < 0 || number.size() + 1 != shape.size())
    fail(ExitCode::kUnusable,
         "[data] {} expected an array of one dimension, got shape ({}); save array.reshape(-1)", path, shape);
  return header;
}

}  // namespace tycho
