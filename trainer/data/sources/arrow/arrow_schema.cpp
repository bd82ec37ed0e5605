// Numbers of types and fields are those of Schema.fbs.
#include "trainer/data/sources/arrow/arrow_schema.h"

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int kDeepest = 32;
constexpr size_t kMostFields = 100'000;

enum TypeNumber : uint8_t {
  kNullType = 1,
  kInt = 2,
  kFloatingPoint = 3,
  kBinary = 4,
  kUtf8 = 5,
  kBool = 6,
  kDecimal = 7,
  kInterval = 11,
  kListType = 12,
  kStructType = 13,
  kUnion = 14,
  kFixedSizeBinary = 15,
  kFixedSizeList = 16,
  kMap = 17,
  kDuration = 18,
  kLargeBinary = 19,
  kLargeUtf8 = 20,
  kLargeList = 21,
  kRunEndEncoded = 22,
  kBinaryView = 23,
  kUtf8View = 24,
  kListViewType = 25,
  kLargeListView = 26
};

int checked_width(int bits) {
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
    fail(ExitCode::kUnusable, "[arrow] its schema has whole numbers of {} bits", bits);
  return bits / 8;
}

void set_type(ArrowField& field, const FlatTable& table) {
  const auto number = table.scalar<uint8_t>(2, 0);
  const std::optional<FlatTable> type = table.table(3);
  const auto attribute = [&](int at) { return type ? type->scalar<int32_t>(at, 0) : 0; };
  field.is_large =
      number == kLargeBinary || number == kLargeUtf8 || number == kLargeList || number == kLargeListView;
  field.is_text = number == kUtf8 || number == kLargeUtf8 || number == kUtf8View;
  switch (number) {
    case kNullType: field.kind = ArrowKind::kNull; return;
    case kInt:
      field.kind = ArrowKind::kWhole;
      field.width = checked_width(attribute(0));
      field.is_signed = type && type->scalar<uint8_t>(1, 0) != 0;
      return;
    case kFloatingPoint: {
      const int precision = type ? type->scalar<int16_t>(0, 0) : 0;
      field.kind = precision == 1 || precision == 2 ? ArrowKind::kFloat : ArrowKind::kOtherFixed;
      field.width = precision == 2 ? 8 : 4;
      return;
    }
    case kBool: field.kind = ArrowKind::kBoolean; return;
    case kBinary:
    case kUtf8:
    case kLargeBinary:
    case kLargeUtf8: field.kind = ArrowKind::kBytes; return;
    case kBinaryView:
    case kUtf8View: field.kind = ArrowKind::kViews; return;
    case kListType:
    case kLargeList:
    case kMap: field.kind = ArrowKind::kList; return;
    case kListViewType:
    case kLargeListView: field.kind = ArrowKind::kListView; return;
    case kFixedSizeList:
      field.kind = ArrowKind::kFixedList;
      field.list_size = attribute(0);
      if (field.list_size < 0)
        fail(ExitCode::kUnusable, "[arrow] its schema has lists of {} items", field.list_size);
      return;
    case kStructType: field.kind = ArrowKind::kStruct; return;
    case kUnion:
      field.kind = ArrowKind::kOtherUnion;
      field.is_dense = type && type->scalar<int16_t>(0, 0) == 1;
      return;
    case kRunEndEncoded: field.kind = ArrowKind::kOtherRuns; return;
    default:
      if (number < kDecimal || (number > kInterval && number != kFixedSizeBinary && number != kDuration))
        fail(ExitCode::kUnusable, "[arrow] column \"{}\" has a type that is not known ({})", field.path,
             number);
      field.kind = ArrowKind::kOtherFixed;
  }
}

ArrowField read_field(const FlatTable& table, const std::string& parent, int depth, size_t& num_fields) {
  if (depth > kDeepest || ++num_fields > kMostFields)
    fail(ExitCode::kUnusable, "[arrow] its schema is nested deeper than {}, or has more than {} fields",
         kDeepest, kMostFields);
  ArrowField field;
  field.name = table.text(0);
  field.path = parent.empty() ? field.name : parent + "." + field.name;
  set_type(field, table);
  if (const auto dictionary = table.table(4)) {
    field.dictionary = dictionary->scalar<int64_t>(0, 0);
    const auto index = dictionary->table(1);
    field.index_width = index ? checked_width(index->scalar<int32_t>(0, 0)) : 4;
    field.index_is_signed = !index || index->scalar<uint8_t>(1, 0) != 0;
  }
  for (const FlatTable& child : table.tables(5))
    field.children.push_back(read_field(child, field.path, depth + 1, num_fields));
  const bool has_items = field.kind == ArrowKind::kList || field.kind == ArrowKind::kListView ||
                         field.kind == ArrowKind::kFixedList;
  if (has_items && field.children.size() != 1)
    fail(ExitCode::kUnusable, "[arrow] the lists of column \"{}\" have {} kinds of items", field.path,
         field.children.size());
  return field;
}

}  // namespace

const char* kind_of_values(const ArrowField& field) {
  switch (field.kind) {
    case ArrowKind::kNull: return "only nulls";
    case ArrowKind::kWhole: return "whole numbers";
    case ArrowKind::kFloat: return "floats";
    case ArrowKind::kBoolean: return "booleans";
    case ArrowKind::kBytes:
    case ArrowKind::kViews: return field.is_text ? "texts" : "bytes";
    case ArrowKind::kList:
    case ArrowKind::kListView:
    case ArrowKind::kFixedList: return "lists";
    case ArrowKind::kStruct: return "structs";
    case ArrowKind::kOtherFixed: return "decimals, times or numbers of 16 bits";
    case ArrowKind::kOtherUnion: return "unions";
    default: return "runs";
  }
}

ArrowField read_arrow_schema(const FlatTable& schema) {
  if (schema.scalar<int16_t>(0, 0) != 0) fail(ExitCode::kUnusable, "[arrow] it is big-endian");
  ArrowField root;
  root.kind = ArrowKind::kStruct;
  size_t num_fields = 0;
  for (const FlatTable& table : schema.tables(1))
    root.children.push_back(read_field(table, "", 1, num_fields));
  return root;
}

const ArrowField* find_field(const ArrowField& root, const std::string& path) {
  for (const ArrowField& child : root.children) {
    if (child.path == path) return &child;
    const bool below = child.kind == ArrowKind::kStruct && !child.dictionary;
    if (const ArrowField* found = below ? find_field(child, path) : nullptr) return found;
  }
  return nullptr;
}

}  // namespace tycho
