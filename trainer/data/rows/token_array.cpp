// Narrow ids are the low halves of int32: writing them needs no comparison.
#include "trainer/data/rows/token_array.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace tycho {
namespace {

int32_t widened_id(int32_t id) { return id; }
int32_t widened_id(uint16_t low) { return low < kMostNarrowIds ? low : low - 65536; }

}  // namespace

TokenArray::TokenArray(int64_t vocab_size, size_t count, int32_t filler) {
  if (vocab_size <= kMostNarrowIds)
    ids_.emplace<std::vector<uint16_t>>(count, static_cast<uint16_t>(filler));
  else
    ids_.emplace<std::vector<int32_t>>(count, filler);
}

size_t TokenArray::size() const {
  return visit([](const auto& ids) { return ids.size(); });
}

int32_t TokenArray::operator[](size_t i) const {
  return visit([&](const auto& ids) { return widened_id(ids[i]); });
}

std::vector<int32_t> TokenArray::widened() const {
  std::vector<int32_t> all(size());
  visit([&](const auto& ids) {
    std::transform(ids.begin(), ids.end(), all.begin(), [](auto id) { return widened_id(id); });
  });
  return all;
}

void TokenArray::set(size_t i, int32_t id) { put(i, std::span(&id, 1)); }

void TokenArray::put(size_t at, std::span<const int32_t> from) {
  visit([&](auto& ids) {
    using Id = typename std::remove_reference_t<decltype(ids)>::value_type;
    std::transform(from.begin(), from.end(), ids.begin() + static_cast<std::ptrdiff_t>(at),
                   [](int32_t id) { return static_cast<Id>(id); });
  });
}

void TokenArray::put(size_t at, const TokenArray& from, size_t begin, size_t count) {
  TYCHO_CHECK(is_narrow() == from.is_narrow(), "[data] ids of two vocabularies in one batch");
  visit([&](auto& ids) {
    const auto& others = std::get<std::remove_cvref_t<decltype(ids)>>(from.ids_);
    std::copy_n(others.begin() + static_cast<std::ptrdiff_t>(begin), count,
                ids.begin() + static_cast<std::ptrdiff_t>(at));
  });
}

}  // namespace tycho
