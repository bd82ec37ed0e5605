// Little endian throughout. Every length is compared with the remaining bytes before anything is read.
#include "trainer/data/mds/mds_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

/// NumPy's float16 (IEEE 754 binary16). Not every compiler has a type for it.
struct Half {
  uint16_t bits = 0;

  explicit operator double() const {
    const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 0x1f) size = fraction == 0 ? HUGE_VAL : std::nan("");
    return (bits & 0x8000) != 0 ? -size : size;
  }
};

/// Calls `act` with a zero of the type with this NumPy name.
template <class Act>
auto with_dtype(std::string_view dtype, Act act) {
  if (dtype == "uint8") return act(uint8_t{});
  if (dtype == "int8") return act(int8_t{});
  if (dtype == "uint16") return act(uint16_t{});
  if (dtype == "int16") return act(int16_t{});
  if (dtype == "uint32") return act(uint32_t{});
  if (dtype == "int32") return act(int32_t{});
  if (dtype == "uint64") return act(uint64_t{});
  if (dtype == "int64") return act(int64_t{});
  if (dtype == "float16") return act(Half{});
  if (dtype == "float32") return act(float{});
  return act(double{});
}

template <class... Args>
[[noreturn]] void wrong(const std::string& place, fmt::format_string<Args...> format, Args&&... args) {
  fail(ExitCode::kUnusable, "{}: {}", place, fmt::format(format, std::forward<Args>(args)...));
}

uint32_t word_at(std::string_view value, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, value.data() + at, sizeof word);
  return word;
}

template <class T>
Json number_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::is_integral_v<T>) return value;
  const auto number = static_cast<double>(value);
  // JSON has no other numbers. A number of fewer bits is shown by the shortest digits that give it again.
  if (!std::isfinite(number)) return python_float(number);
  if constexpr (std::is_same_v<T, float>) return std::stod(fmt::format("{}", value));
  return number;
}

Json show_number(std::string_view dtype, const char* bytes) {
  return with_dtype(dtype, [&](auto zero) { return number_at<decltype(zero)>(bytes); });
}

Json show_bytes(std::string_view value) {
  constexpr size_t kShown = 16;
  std::string digits;
  for (const char c : value.substr(0, kShown)) digits += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return {{"num_bytes", value.size()}, {"begins", digits}};
}

Json show_picture(std::string_view value, const std::string& place) {
  const MdsPicture picture = read_mds_picture(value, place);
  return {{"width", picture.width},
          {"height", picture.height},
          {"mode", picture.mode},
          {"num_bytes", picture.pixels.size()}};
}

Json show_array(std::string_view encoding, std::string_view value, int64_t most, const std::string& place) {
  const MdsArray array = read_mds_array(encoding, value, place);
  Json values = Json::array();
  const int64_t bytes = mds_dtype_bytes(array.dtype);
  for (int64_t i = 0; i < std::min(most, array.count); ++i)
    values.push_back(show_number(array.dtype, array.elements + i * bytes));
  return {{"dtype", array.dtype}, {"shape", array.shape}, {"values", std::move(values)}};
}

Json show_list(std::string_view encoding, std::string_view value, const std::string& place) {
  Json list = Json::array();
  for (const std::string_view item : read_mds_list(encoding, value, place))
    list.push_back(encoding == "list[pil]" ? show_picture(item, place) : show_bytes(item));
  return list;
}

void check_utf8(std::string_view text, const std::string& place) {
  uint32_t code = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    if (length == 1 && code == 0xFFFD) wrong(place, "the text is not UTF-8 at byte {}", at);
    at += length;
  }
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text;
}

size_t take_digits(std::string_view& text) {
  const size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(count);
  return count;
}

bool is_integer(std::string_view text) {
  text = without_sign(text);
  return take_digits(text) > 0 && text.empty();
}

/// True for texts that Python's float and Decimal write: digits with a point and an exponent, or a name.
bool is_number(std::string_view text) {
  text = without_sign(text);
  for (const std::string_view name : {"inf", "nan", "Infinity", "NaN", "sNaN"})
    if (text == name) return true;
  size_t digits = take_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    digits += take_digits(text);
  }
  if (digits == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) return is_integer(text.substr(1));
  return text.empty();
}

/// Parses JSON for display. NaN and Infinity, which Python writes and reads although JSON has no such
/// numbers, make the whole value a text.
Json show_json(std::string_view value, const std::string& place) {
  check_utf8(value, place);
  try {
    return parse_json(value, place);
  } catch (const Error&) {
    if (value.find("NaN") == std::string_view::npos && value.find("Infinity") == std::string_view::npos)
      throw;
    return std::string(value);
  }
}

}  // namespace

Json show_mds_value(std::string_view encoding, std::string_view value, int64_t most_elements,
                    const std::string& place) {
  if (encoding == "int") encoding = "int64";
  if (const int64_t bytes = mds_dtype_bytes(encoding)) {
    if (std::cmp_not_equal(value.size(), bytes))
      wrong(place, "expected {} bytes, found {}", bytes, value.size());
    return show_number(encoding, value.data());
  }
  if (is_mds_array(encoding)) return show_array(encoding, value, most_elements, place);
  if (encoding == "json") return show_json(value, place);
  if (encoding == "pil") return show_picture(value, place);
  if (encoding.starts_with("list[") || encoding == "jpeg_array" || encoding == "jpegarray")
    return show_list(encoding, value, place);
  if (encoding == "bytes" || encoding == "jpeg" || encoding == "png") return show_bytes(value);
  check_utf8(value, place);
  if (encoding == "str_int" ? !is_integer(value) : encoding != "str" && !is_number(value))
    wrong(place, "expected a number as text, found \"{}\"", value.substr(0, 64));
  return std::string(value);
}

void check_mds_value(std::string_view encoding, std::string_view value, const std::string& place) {
  show_mds_value(encoding, value, 0, place);
}

MdsArray read_mds_array(std::string_view encoding, std::string_view value, const std::string& place) {
  if (!is_mds_array(encoding)) wrong(place, "the array is in a column of another encoding");
  const MdsArrayEncoding fixed = mds_array_encoding(encoding);
  MdsArray array{.dtype = fixed.dtype, .shape = fixed.shape};
  size_t at = 0;
  if (array.dtype.empty()) {
    array.dtype = mds_dtype_name(value.empty() ? -1 : static_cast<uint8_t>(value[at++]));
    if (array.dtype.empty()) wrong(place, "the array has an unknown dtype");
  }
  if (array.shape.empty()) {
    if (at == value.size()) wrong(place, "the array ends before its shape");
    const auto header = static_cast<uint8_t>(value[at++]);
    const size_t width = size_t{1} << (header & 3), dims = header >> 2;
    if (dims == 0) wrong(place, "the array has no dimensions");
    if (value.size() - at < dims * width) wrong(place, "the array ends inside its shape");
    for (size_t i = 0; i < dims; ++i, at += width) {
      uint64_t dim = 0;
      std::memcpy(&dim, value.data() + at, width);
      if (dim == 0 || dim > value.size()) wrong(place, "the array has a dimension of {} elements", dim);
      array.shape.push_back(static_cast<int64_t>(dim));
    }
  }
  const auto bytes = static_cast<uint64_t>(mds_dtype_bytes(array.dtype));
  uint64_t count = 1;
  for (const int64_t dim : array.shape) {
    count *= static_cast<uint64_t>(dim);
    if (count > value.size()) break;  // also before it overflows: a dimension is below 2^32
  }
  if ((value.size() - at) % bytes != 0 || (value.size() - at) / bytes != count)
    wrong(place, "the array does not have the number of bytes that its shape says");
  array.elements = value.data() + at;
  array.count = static_cast<int64_t>(count);
  return array;
}

MdsPicture read_mds_picture(std::string_view value, const std::string& place) {
  constexpr size_t kHead = 12, kLongestMode = 16;
  if (value.size() < kHead) wrong(place, "the picture ends inside its header");
  const size_t mode_bytes = word_at(value, 8);
  if (mode_bytes > kLongestMode || mode_bytes > value.size() - kHead)
    wrong(place, "the picture has a mode of {} bytes", mode_bytes);
  check_utf8(value.substr(kHead, mode_bytes), place);
  MdsPicture picture{word_at(value, 0), word_at(value, 4), value.substr(kHead, mode_bytes),
                     value.substr(kHead + mode_bytes)};
  // Modes have from one bit to four bytes per pixel.
  const uint64_t pixels = uint64_t{picture.width} * picture.height;
  if (picture.pixels.size() < pixels / 8 || picture.pixels.size() / 4 > pixels)
    wrong(place, "a picture of {} x {} pixels cannot have {} bytes", picture.width, picture.height,
          picture.pixels.size());
  return picture;
}

std::vector<std::string_view> read_mds_list(std::string_view encoding, std::string_view value,
                                            const std::string& place) {
  size_t at = encoding.starts_with("list[") ? 4 : 0;  // a word for the future
  if (value.size() < at + 4) wrong(place, "the list ends inside its header");
  const size_t count = word_at(value, at);
  at += 4;
  if (count > (value.size() - at) / 4) wrong(place, "the list of {} items ends inside their sizes", count);
  const size_t sizes = at;
  at += 4 * count;
  std::vector<std::string_view> items;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = word_at(value, sizes + 4 * i);
    if (size > value.size() - at) wrong(place, "item {} of the list ends behind it", i + 1);
    items.push_back(value.substr(at, size));
    at += size;
  }
  if (at != value.size()) wrong(place, "the list has {} bytes behind its items", value.size() - at);
  return items;
}

}  // namespace tycho
