// Two tensors side by side, a few megabytes at a time.
#include "trainer/checkpoint/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/checkpoint/safetensors.h"

namespace tycho {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 20;

std::string type_of(const TensorBytes& tensor) {
  return fmt::format("{} [{}]", tensor.dtype, fmt::join(tensor.shape, ", "));
}

double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

template <class T>
T read_as(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Returns the number that an element's bytes encode; nullopt when the dtype is not a floating-point one.
std::optional<double> value_of(const std::string& dtype, const char* bytes) {
  if (dtype == "F32") return read_as<float>(bytes);
  if (dtype == "F64") return read_as<double>(bytes);
  if (dtype == "BF16") return std::bit_cast<float>(uint32_t{read_as<uint16_t>(bytes)} << 16);
  if (dtype == "F16") return half_value(read_as<uint16_t>(bytes));
  return std::nullopt;
}

/// Adds the differences between two rows of elements.
void compare_elements(const std::vector<char>& a, const std::vector<char>& b, const std::string& dtype,
                      TensorDifference& found) {
  const auto width = static_cast<size_t>(safetensors_dtype_bytes(dtype));
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return;
  for (size_t at = 0; at < a.size(); at += width) {
    if (std::memcmp(a.data() + at, b.data() + at, width) == 0) continue;
    const bool is_first = found.num_different++ == 0;
    const auto x = value_of(dtype, a.data() + at), y = value_of(dtype, b.data() + at);
    const double difference = x && y ? std::abs(*x - *y) : NAN;
    if (is_first) found.max_difference = 0;
    if (!std::isfinite(difference)) found.max_difference.reset();
    if (found.max_difference) found.max_difference = std::max(*found.max_difference, difference);
  }
}

TensorDifference compare_values(const CheckpointReader& a, const CheckpointReader& b,
                                const TensorBytes& tensor) {
  const int64_t width = safetensors_dtype_bytes(tensor.dtype);
  TensorDifference found = {tensor.name, type_of(tensor), type_of(tensor)};
  found.num_elements = tensor.num_bytes / width;
  std::vector<char> in_a, in_b;
  for (int64_t begin = 0; begin < found.num_elements; begin += kChunkElements) {
    const int64_t end = std::min(begin + kChunkElements, found.num_elements);
    for (const Box& box : boxes_of_range(tensor.shape, begin, end)) {
      const int64_t num_bytes = volume(box) * width;
      in_a.resize(static_cast<size_t>(num_bytes));
      in_b.resize(static_cast<size_t>(num_bytes));
      a.read_box(tensor.name, box, in_a.data(), num_bytes);
      b.read_box(tensor.name, box, in_b.data(), num_bytes);
      compare_elements(in_a, in_b, tensor.dtype, found);
    }
  }
  return found;
}

}  // namespace

TensorComparison compare_tensors(const CheckpointReader& a, const CheckpointReader& b) {
  TensorComparison comparison;
  for (const std::string& name : a.names()) {
    const TensorBytes& in_a = a.describe(name);
    const bool is_in_b = b.has(name);
    if (is_in_b && type_of(in_a) == type_of(b.describe(name))) {
      TensorDifference found = compare_values(a, b, in_a);
      if (found.num_different == 0)
        ++comparison.num_equal;
      else
        comparison.differences.push_back(std::move(found));
    } else {
      comparison.differences.push_back({name, type_of(in_a), is_in_b ? type_of(b.describe(name)) : ""});
    }
  }
  for (const std::string& name : b.names())
    if (!a.has(name)) comparison.differences.push_back({name, "", type_of(b.describe(name))});
  return comparison;
}

}  // namespace tycho
