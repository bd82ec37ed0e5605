// A scalar is an array of one number that serves all tokens.
#include "trainer/data/mds/weight_column.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/data/mds/mds_value.h"
#include "trainer/data/rows/stored_tokens.h"
#include "trainer/data/rows/target_weights.h"

namespace tycho {
namespace {

struct StoredNumbers {
  std::string_view dtype;
  const char* elements = nullptr;
  int64_t count = 0;
  bool is_scalar = false;
};

StoredNumbers numbers_in(std::string_view encoding, std::string_view value, const std::string& place) {
  if (is_mds_array(encoding)) {
    const MdsArray array = read_mds_array(encoding, value, "[data] " + place);
    return {array.dtype, array.elements, array.count, false};
  }
  return {encoding == "int" ? "int64" : encoding, value.data(), 1, true};
}

template <class Stored>
void take(const StoredNumbers& numbers, int64_t first, std::span<float> weights, bool marks,
          const std::string& place) {
  if (numbers.is_scalar) {
    std::fill(weights.begin(), weights.end(),
              target_weight(static_cast<double>(stored_at<Stored>(numbers.elements, 0)), marks, place));
    return;
  }
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = target_weight(
        static_cast<double>(stored_at<Stored>(numbers.elements, static_cast<size_t>(first) + i)), marks,
        place);
}

}  // namespace

void read_weights(std::string_view encoding, std::string_view value, int64_t count, int64_t first,
                  std::span<float> weights, bool marks, const std::string& place) {
  const StoredNumbers numbers = numbers_in(encoding, value, place);
  if (!numbers.is_scalar && numbers.count != count)
    fail(ExitCode::kUnusable,
         "[data] {}: expected as many weights as tokens, {}, got {}: write one weight for each token, or a "
         "column of one number for the row",
         place, count, numbers.count);
  if (numbers.dtype == "float32") return take<float>(numbers, first, weights, marks, place);
  if (numbers.dtype == "float64") return take<double>(numbers, first, weights, marks, place);
  if (numbers.dtype == "int8") return take<int8_t>(numbers, first, weights, marks, place);
  if (numbers.dtype == "uint8") return take<uint8_t>(numbers, first, weights, marks, place);
  if (numbers.dtype == "int32") return take<int32_t>(numbers, first, weights, marks, place);
  if (numbers.dtype == "int64") return take<int64_t>(numbers, first, weights, marks, place);
  fail(ExitCode::kUnusable,
       "[data] {}: expected weights as ndarray:float32, or as one float32, float64 or int for the row, got "
       "the "
       "encoding {}",
       place, encoding);
}

}  // namespace tycho
