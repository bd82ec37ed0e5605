// Reads token ids from files and checks their range in the same loop, which has no branch, so that the
// compiler vectorises it (with -O3).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

namespace tycho {

/// Returns integer `i` of an unaligned array.
template <class Stored>
Stored stored_at(const char* elements, size_t i) {
  Stored value;
  std::memcpy(&value, elements + i * sizeof value, sizeof value);
  return value;
}

/// Fills `ids`. Returns true if all of them are in [0, vocab_size).
template <class Stored, class Id>
bool copy_tokens(const char* elements, int64_t vocab_size, std::span<Id> ids) {
  using Unsigned = std::make_unsigned_t<Stored>;  // negative tokens become large
  const auto last = static_cast<Unsigned>(
      std::min(static_cast<uint64_t>(vocab_size - 1), uint64_t{std::numeric_limits<Unsigned>::max()}));
  Unsigned outside = 0;  // as wide as a token, so that the compiler can vectorise
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto token = stored_at<Unsigned>(elements, i);
    outside |= static_cast<Unsigned>(token > last);
    ids[i] = static_cast<Id>(token);
  }
  return outside == 0;
}

/// Returns the index of the first token that is not in [0, vocab_size). Requires that there is one.
template <class Stored>
size_t first_outside(const char* elements, int64_t vocab_size) {
  size_t i = 0;
  while (std::cmp_greater_equal(stored_at<Stored>(elements, i), 0) &&
         std::cmp_less(stored_at<Stored>(elements, i), vocab_size))
    ++i;
  return i;
}

}  // namespace tycho
