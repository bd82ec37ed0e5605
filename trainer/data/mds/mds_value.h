// Decodes and checks values of MDS columns of any encoding.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/data/mds/mds_format.h"

namespace tycho {

/// Returns a value as JSON for users. Numbers and texts stay as they are; str_int, str_float and str_decimal
/// become their text; arrays {"dtype", "shape", "values"}, with at most `most_elements` values; bytes and
/// images {"num_bytes", "begins"} (16 bytes in hexadecimal digits), a pil image also with its size and mode;
/// lists of images a list of these. Throws Error (kUnusable) "PLACE: ..." for bytes that the encoding cannot
/// have: lengths that do not add up, text that is not UTF-8, json that does not parse.
Json show_mds_value(std::string_view encoding, std::string_view value, int64_t most_elements,
                    const std::string& place);

/// Checks a value as show_mds_value does, without a result. Throws the same Errors.
void check_mds_value(std::string_view encoding, std::string_view value, const std::string& place);

/// View of an array inside a value, which must outlive it.
struct MdsArray {
  std::string_view dtype;
  std::vector<int64_t> shape;
  const char* elements = nullptr;  // unaligned; the last dimension is contiguous
  int64_t count = 0;
};
MdsArray read_mds_array(std::string_view encoding, std::string_view value, const std::string& place);

/// Image of a column "pil": its raw pixels, in Pillow's mode ("RGB").
struct MdsPicture {
  uint32_t width = 0, height = 0;
  std::string_view mode, pixels;
};
MdsPicture read_mds_picture(std::string_view value, const std::string& place);

/// Returns the items of a column "list[...]", whose values begin with a reserved word, or of "jpeg_array",
/// whose values begin with the number of items.
std::vector<std::string_view> read_mds_list(std::string_view encoding, std::string_view value,
                                            const std::string& place);

}  // namespace tycho
