// A table begins with the distance to its vtable, which has the place of each field.
#include "trainer/data/sources/arrow/flatbuffer.h"

#include "trainer/base/error.h"

namespace tycho {
namespace {

template <class T>
T flat_number(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

std::string_view FlatTable::bytes_at(size_t at, size_t count) const {
  if (at > bytes_.size() || count > bytes_.size() - at)
    fail(ExitCode::kUnusable, "[arrow] a header points to byte {}, but it has {}", at, bytes_.size());
  return bytes_.substr(at, count);
}

FlatTable::FlatTable(std::string_view bytes, size_t at) : bytes_(bytes), at_(at) {
  const int64_t vtable = static_cast<int64_t>(at) - flat_number<int32_t>(bytes_at(at, 4));
  if (vtable < 0) fail(ExitCode::kUnusable, "[arrow] a header points before its beginning");
  vtable_ = static_cast<size_t>(vtable);
  vtable_bytes_ = flat_number<uint16_t>(bytes_at(vtable_, 2));
  bytes_at(vtable_, vtable_bytes_);
}

FlatTable FlatTable::root(std::string_view bytes) {
  if (bytes.size() < 4) fail(ExitCode::kUnusable, "[arrow] a header has {} bytes", bytes.size());
  return {bytes, flat_number<uint32_t>(bytes)};
}

size_t FlatTable::place_of(int field) const {
  const size_t entry = 4 + 2 * static_cast<size_t>(field);
  if (entry + 2 > vtable_bytes_) return 0;
  const size_t offset = flat_number<uint16_t>(bytes_at(vtable_ + entry, 2));
  return offset == 0 ? 0 : at_ + offset;
}

size_t FlatTable::target_of(size_t at) const { return at + flat_number<uint32_t>(bytes_at(at, 4)); }

std::string_view FlatTable::text(int field) const { return items(field, 1); }

std::optional<FlatTable> FlatTable::table(int field) const {
  const size_t at = place_of(field);
  if (at == 0) return std::nullopt;
  return FlatTable(bytes_, target_of(at));
}

std::vector<FlatTable> FlatTable::tables(int field) const {
  std::vector<FlatTable> all;
  const std::string_view offsets = items(field, 4);
  for (size_t i = 0; i < offsets.size(); i += 4)
    all.push_back({bytes_, target_of(static_cast<size_t>(offsets.data() - bytes_.data()) + i)});
  return all;
}

std::string_view FlatTable::items(int field, size_t item_bytes) const {
  const size_t at = place_of(field);
  if (at == 0) return "";
  const size_t begin = target_of(at);
  return bytes_at(begin + 4, item_bytes * flat_number<uint32_t>(bytes_at(begin, 4)));
}

}  // namespace tycho
