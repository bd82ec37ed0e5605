// Encodings of MDS columns, little endian throughout.
#include "trainer/data/mds/mds_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

struct Dtype {
  std::string_view name;
  int64_t bytes;
  uint8_t code;  // in values of the encoding "ndarray", which do not fix their dtype
};

constexpr std::array<Dtype, 11> kDtypes = {{{"uint8", 1, 8},
                                            {"int8", 1, 9},
                                            {"uint16", 2, 16},
                                            {"int16", 2, 17},
                                            {"float16", 2, 18},
                                            {"uint32", 4, 32},
                                            {"int32", 4, 33},
                                            {"float32", 4, 34},
                                            {"uint64", 8, 64},
                                            {"int64", 8, 65},
                                            {"float64", 8, 66}}};

constexpr std::string_view kArray = "ndarray";
constexpr std::array<std::string_view, 14> kVariable = {
    "bytes", "str", "json",       "str_int",   "str_float",  "str_decimal", "jpeg",
    "png",   "pil", "jpeg_array", "jpegarray", "list[jpeg]", "list[png]",   "list[pil]"};

/// Parts of "ndarray:int32:2,3". Parts that the encoding does not fix are empty.
struct ArrayEncoding {
  std::string_view dtype, shape;
};

ArrayEncoding split_array_encoding(std::string_view encoding) {
  std::string_view rest = encoding.substr(kArray.size());
  if (!rest.empty()) rest.remove_prefix(1);
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return {rest, {}};
  return {rest.substr(0, colon), rest.substr(colon + 1)};
}

/// Returns the number of elements of a shape "2,3"; 0 when it is malformed or too large.
int64_t shape_elements(std::string_view shape) {
  int64_t product = 1;
  while (true) {
    const size_t comma = shape.find(',');
    const std::string_view part = shape.substr(0, comma);
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), dim);
    if (error != std::errc() || end != part.data() + part.size() || dim < 1 || dim > INT32_MAX / 8 / product)
      return 0;
    product *= dim;
    if (comma == std::string_view::npos) return product;
    shape.remove_prefix(comma + 1);
  }
}

uint64_t read_unsigned(const char* bytes, int64_t count) {
  uint64_t value = 0;
  std::memcpy(&value, bytes, static_cast<size_t>(count));
  return value;
}

}  // namespace

int64_t mds_dtype_bytes(std::string_view dtype) {
  const auto found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& d) { return d.name == dtype; });
  return found == kDtypes.end() ? 0 : found->bytes;
}

std::optional<int64_t> mds_column_size(const MdsColumn& column) {
  const std::string& encoding = column.encoding;
  if (std::find(kVariable.begin(), kVariable.end(), encoding) != kVariable.end()) return std::nullopt;
  if (encoding == "int") return 8;
  if (const int64_t bytes = mds_dtype_bytes(encoding)) return bytes;
  if (is_mds_array(encoding)) {
    const auto [dtype, shape] = split_array_encoding(encoding);
    const int64_t bytes = mds_dtype_bytes(dtype);
    if (shape.empty() && (bytes > 0 || dtype.empty())) return std::nullopt;
    if (bytes > 0 && shape_elements(shape) > 0) return bytes * shape_elements(shape);
  }
  if (encoding == "pkl")
    fail(ExitCode::kUnusable,
         "[mds] column \"{}\" has the encoding \"pkl\", which is not supported: reading a pickle can run any "
         "program; write the column as json, bytes or ndarray",
         column.name);
  fail(ExitCode::kUnusable, "[mds] column \"{}\" has the encoding \"{}\", which is not supported",
       column.name, encoding);
}

bool is_mds_array(std::string_view encoding) {
  return encoding == kArray || encoding.starts_with("ndarray:");
}

std::string_view mds_dtype_name(int code) {
  const auto found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& d) { return d.code == code; });
  return found == kDtypes.end() ? std::string_view() : found->name;
}

MdsArrayEncoding mds_array_encoding(std::string_view encoding) {
  auto [dtype, text] = split_array_encoding(encoding);
  MdsArrayEncoding parts{.dtype = dtype, .shape = {}};
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::from_chars(text.data(), text.data() + comma, parts.shape.emplace_back());
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::string encode_mds_array(const void* elements, int64_t count, int64_t element_bytes) {
  TYCHO_CHECK(count > 0 && count <= UINT32_MAX, "[mds] an array must have 1 to 2^32-1 elements, got {}",
              count);
  const int width_code = count < 1 << 8 ? 0 : count < 1 << 16 ? 1 : 2;
  const size_t width = size_t{1} << width_code, bytes = static_cast<size_t>(count * element_bytes);
  std::string value(1 + width + bytes, '\0');
  value[0] = static_cast<char>(1 << 2 | width_code);
  std::memcpy(value.data() + 1, &count, width);
  std::memcpy(value.data() + 1 + width, elements, bytes);
  return value;
}

MdsArrayView decode_mds_array(std::string_view encoding, std::string_view value, const std::string& place) {
  const auto malformed = [&](const char* what) {
    fail(ExitCode::kUnusable, "{}: the array {}", place, what);
  };
  if (!is_mds_array(encoding)) malformed("is in a column of another encoding");
  auto [dtype, shape] = split_array_encoding(encoding);
  size_t at = 0;
  if (dtype.empty()) {
    dtype = mds_dtype_name(value.empty() ? -1 : static_cast<uint8_t>(value[at++]));
    if (dtype.empty()) malformed("has an unknown dtype");
  }
  uint64_t count = 0;
  if (!shape.empty()) {
    count = static_cast<uint64_t>(shape_elements(shape));
  } else {
    if (at == value.size()) malformed("ends before its shape");
    const auto header = static_cast<uint8_t>(value[at++]);
    const int64_t width = int64_t{1} << (header & 3);
    if (header >> 2 != 1) malformed("must have one dimension");
    if (value.size() - at < static_cast<size_t>(width)) malformed("ends inside its shape");
    count = read_unsigned(value.data() + at, width);
    at += static_cast<size_t>(width);
  }
  const auto element_bytes = static_cast<uint64_t>(mds_dtype_bytes(dtype));
  if (element_bytes == 0 || (value.size() - at) % element_bytes != 0 ||
      (value.size() - at) / element_bytes != count)
    malformed("does not have the number of bytes that its shape says");
  return {dtype, value.data() + at, static_cast<int64_t>(count)};
}

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // Shortest digits that give this number again, and the position of the point.
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  std::string text(buffer.data(), end.ptr);
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return text;
  std::string sign = value < 0 || std::signbit(value) ? "-" : "", digits;
  for (const char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string python_json(const Json& json, JsonKeys keys) {
  if (json.is_number_float()) {
    const auto value = json.get<double>();
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return python_float(value);
  }
  if (!json.is_structured()) return json.dump(-1, ' ', true);
  std::string out(1, json.is_object() ? '{' : '[');
  std::vector<Json::const_iterator> items;
  for (auto it = json.begin(); it != json.end(); ++it) items.push_back(it);
  if (json.is_object() && keys == JsonKeys::kSorted)
    std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.key() < b.key(); });
  for (const auto& item : items) {
    if (out.size() > 1) out += ", ";
    if (json.is_object()) out += Json(item.key()).dump(-1, ' ', true) + ": ";
    out += python_json(*item, keys);
  }
  return out + (json.is_object() ? '}' : ']');
}

}  // namespace tycho
