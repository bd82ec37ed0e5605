// One conversion per stored type.
#include "trainer/data/mds/mds_tokens.h"

#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/mds/mds_format.h"

namespace tycho {
namespace {

template <class Stored>
std::vector<int32_t> convert_ids(const char* elements, int64_t count, const std::string& place) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i) {
    Stored id;
    std::memcpy(&id, elements + i * sizeof id, sizeof id);
    if (std::cmp_less(id, 0) || std::cmp_greater(id, INT32_MAX))
      fail(ExitCode::kUnusable, "{} has {} at position {}, which is not a token", place, id, i);
    ids[i] = static_cast<int32_t>(id);
  }
  return ids;
}

}  // namespace

std::vector<int32_t> mds_tokens(std::string_view encoding, std::string_view value, const std::string& place) {
  MdsArrayView array{"int64", value.data(), static_cast<int64_t>(value.size() / sizeof(int64_t))};
  if (encoding != "bytes") array = decode_mds_array(encoding, value, place);
  if (array.dtype == "int32") return convert_ids<int32_t>(array.elements, array.count, place);
  if (array.dtype == "uint16") return convert_ids<uint16_t>(array.elements, array.count, place);
  if (array.dtype == "uint32") return convert_ids<uint32_t>(array.elements, array.count, place);
  if (array.dtype == "int64") return convert_ids<int64_t>(array.elements, array.count, place);
  fail(ExitCode::kUnusable, "{} holds {} values; tokens must be int32, int64, uint16 or uint32", place,
       array.dtype);
}

}  // namespace tycho
