// Every index and length comes from the file, and is checked where it is used.
#include "trainer/data/sources/arrow/arrow_column.h"

#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/text/utf8.h"
#include "trainer/data/sources/json_line.h"

namespace tycho {
namespace {

constexpr int64_t kMostValues = int64_t{16} << 20;  // in a row

void check_index(const ArrowColumn& column, int64_t i) {
  if (i < 0 || i >= column.length)
    fail(ExitCode::kUnusable, "[arrow] value {} of \"{}\" is missing: there are {}", i, column.field->path,
         column.length);
}

template <class Offset>
std::pair<int64_t, int64_t> range_of(ArrowColumn& column, int64_t i) {
  const auto begin = static_cast<int64_t>(column.offsets.number<Offset>(i));
  const auto end = static_cast<int64_t>(column.offsets.number<Offset>(i + 1));
  if (begin < 0 || end < begin)
    fail(ExitCode::kUnusable, "[arrow] offsets of \"{}\" fall", column.field->path);
  return {begin, end};
}

/// Returns the items of list `i`: the first, and the end.
std::pair<int64_t, int64_t> items_of(ArrowColumn& column, int64_t i) {
  const ArrowField& field = *column.field;
  if (field.kind == ArrowKind::kFixedList) return {i * field.list_size, (i + 1) * field.list_size};
  if (field.kind == ArrowKind::kList)
    return field.is_large ? range_of<int64_t>(column, i) : range_of<int32_t>(column, i);
  const int64_t begin =
      field.is_large ? column.offsets.number<int64_t>(i) : column.offsets.number<int32_t>(i);
  const int64_t size = field.is_large ? column.sizes.number<int64_t>(i) : column.sizes.number<int32_t>(i);
  if (begin < 0 || size < 0 || begin > INT64_MAX - size)
    fail(ExitCode::kUnusable, "[arrow] list {} of \"{}\" has {} items from {}", i, field.path, size, begin);
  return {begin, begin + size};
}

int64_t whole_at(ArrowBuffer& data, int width, bool is_signed, int64_t i) {
  switch (width) {
    case 1: return is_signed ? data.number<int8_t>(i) : data.number<uint8_t>(i);
    case 2: return is_signed ? data.number<int16_t>(i) : data.number<uint16_t>(i);
    case 4: return is_signed ? data.number<int32_t>(i) : data.number<uint32_t>(i);
    default: return data.number<int64_t>(i);
  }
}

/// Finds value `i` of a column with a dictionary.
std::pair<ArrowColumn*, int64_t> in_dictionary(ArrowColumn& column, int64_t i) {
  const ArrowField& field = *column.field;
  int64_t index = whole_at(column.data, field.index_width, field.index_is_signed, i);
  if (column.dictionary != nullptr && index >= 0)
    for (ArrowColumn& part : *column.dictionary) {
      if (index < part.length) return {&part, index};
      index -= part.length;
    }
  fail(ExitCode::kUnusable, "[arrow] \"{}\" points outside its dictionary", field.path);
}

Json number_of(ArrowColumn& column, int64_t i) {
  const ArrowField& field = *column.field;
  if (field.kind == ArrowKind::kFloat)
    return field.width == 8 ? column.data.number<double>(i)
                            : static_cast<double>(column.data.number<float>(i));
  if (field.width == 8 && !field.is_signed) return column.data.number<uint64_t>(i);
  return whole_at(column.data, field.width, field.is_signed, i);
}

Json list_of(ArrowColumn& column, int64_t i, ArrowRoom& room) {
  const auto [begin, end] = items_of(column, i);
  Json list = Json::array();
  for (int64_t item = begin; item < end; ++item)
    list.push_back(arrow_value(column.children.at(0), item, room));
  return list;
}

Json struct_of(ArrowColumn& column, int64_t i, ArrowRoom& room) {
  Json made = Json::object();
  for (ArrowColumn& child : column.children)
    if (Json member = arrow_value(child, i, room); !member.is_null())
      made[child.field->name] = std::move(member);
  return made;
}

}  // namespace

ArrowRoom row_room() { return {kMostValues, static_cast<int64_t>(kMostLineBytes)}; }

bool ArrowColumn::is_null(int64_t i) {
  check_index(*this, i);
  if (field->kind == ArrowKind::kNull && !field->dictionary) return true;
  return has_nulls && validity.num_bytes() > 0 && !validity.bit(i);
}

std::string_view ArrowColumn::text(int64_t i, int64_t most_bytes) {
  const auto check = [&](int64_t bytes) {
    if (bytes < 0 || bytes > most_bytes)
      fail(ExitCode::kUnusable, "[arrow] \"{}\" has {} bytes; a row may have {} MiB", field->path, bytes,
           kMostLineBytes >> 20);
  };
  if (field->kind == ArrowKind::kBytes) {
    const auto [begin, end] = field->is_large ? range_of<int64_t>(*this, i) : range_of<int32_t>(*this, i);
    check(end - begin);
    return begin == end ? std::string_view() : data.at(begin, end - begin);
  }
  constexpr int64_t kViewBytes = 16, kInlineBytes = 12;
  struct {
    int32_t bytes, prefix, block, offset;
  } view;
  if (i >= data.num_bytes() / kViewBytes)
    fail(ExitCode::kUnusable, "[arrow] \"{}\" ends too early", field->path);
  const std::string_view stored = data.at(i * kViewBytes, kViewBytes);
  std::memcpy(&view, stored.data(), sizeof view);
  check(view.bytes);
  if (view.bytes <= kInlineBytes) return stored.substr(4, static_cast<size_t>(view.bytes));
  if (view.block < 0 || view.block >= std::ssize(blocks))
    fail(ExitCode::kUnusable, "[arrow] \"{}\" points to a buffer that is missing", field->path);
  return blocks[static_cast<size_t>(view.block)].at(view.offset, view.bytes);
}

std::optional<std::string_view> arrow_text(ArrowColumn& column, int64_t i, ArrowRoom& room) {
  if (column.is_null(i)) return std::nullopt;
  if (column.field->dictionary) {
    const auto [part, index] = in_dictionary(column, i);
    if (part->is_null(index)) return std::nullopt;
    return part->text(index, room.bytes);
  }
  return column.text(i, room.bytes);
}

Json arrow_value(ArrowColumn& column, int64_t i, ArrowRoom& room) {
  if (--room.values < 0)
    fail(ExitCode::kUnusable, "[arrow] \"{}\": a row has more than {} values", column.field->path,
         kMostValues);
  if (column.is_null(i)) return nullptr;
  if (column.field->dictionary) {
    const auto [part, index] = in_dictionary(column, i);
    return arrow_value(*part, index, room);
  }
  switch (column.field->kind) {
    case ArrowKind::kWhole:
    case ArrowKind::kFloat: return number_of(column, i);
    case ArrowKind::kBoolean: return column.data.bit(i);
    case ArrowKind::kBytes:
    case ArrowKind::kViews: {
      const std::string_view text = column.text(i, room.bytes);
      room.bytes -= std::ssize(text);
      if (const size_t bad = find_not_text(text); bad != std::string_view::npos)
        fail(ExitCode::kUnusable, "[arrow] a text of \"{}\" is not UTF-8 at byte {}", column.field->path,
             bad);
      return std::string(text);
    }
    case ArrowKind::kList:
    case ArrowKind::kListView:
    case ArrowKind::kFixedList: return list_of(column, i, room);
    case ArrowKind::kStruct: return struct_of(column, i, room);
    default: fail(ExitCode::kUnusable, "[arrow] \"{}\" is not read", column.field->path);
  }
}

}  // namespace tycho
