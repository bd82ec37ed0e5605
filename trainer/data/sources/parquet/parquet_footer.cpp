// Reads FileMetaData of parquet.thrift; field ids are those of the format.
#include "trainer/data/sources/parquet/parquet_footer.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/sources/parquet/thrift.h"

namespace tycho {
namespace {

using Type = ThriftReader::Type;

constexpr int64_t kOptional = 1, kRepeated = 2;
constexpr int64_t kConvertedList = 3, kConvertedDecimal = 5;  // values of ConvertedType
constexpr int kLogicalList = 3, kLogicalDecimal = 5;          // values of LogicalType

struct SchemaElement {
  std::optional<int64_t> type;  // none: a struct
  int64_t repetition = 0, num_children = 0;
  std::string_view name;
  bool is_list = false, is_decimal = false;
};

SchemaElement read_element(ThriftReader& in) {
  SchemaElement element;
  in.read_struct([&](int id, Type type) {
    if (id == 1 && type == Type::kI32) return element.type = in.read_int(), true;
    if (id == 3 && type == Type::kI32) return element.repetition = in.read_int(), true;
    if (id == 4 && type == Type::kBinary) return element.name = in.read_binary(), true;
    if (id == 5 && type == Type::kI32) return element.num_children = in.read_int(), true;
    if (id == 6 && type == Type::kI32) {
      const int64_t converted = in.read_int();
      element.is_list |= converted == kConvertedList;
      element.is_decimal |= converted == kConvertedDecimal;
      return true;
    }
    if (id != 10 || type != Type::kStruct) return false;
    in.read_struct([&](int kind, Type) {
      element.is_list |= kind == kLogicalList;
      element.is_decimal |= kind == kLogicalDecimal;
      return false;
    });
    return true;
  });
  return element;
}

void read_column_meta(ThriftReader& in, ParquetColumnMeta& column, std::string& path) {
  in.read_struct([&](int id, Type type) {
    if (id == 3 && type == Type::kList) {
      in.read_list(Type::kBinary, [&] {
        if (!path.empty()) path += '.';
        path += in.read_binary();
      });
      return true;
    }
    if (id == 4 && type == Type::kI32) return column.codec = in.read_int(), true;
    if (type != Type::kI64) return false;
    if (id == 5) return column.num_values = in.read_int(), true;
    if (id == 7) return column.size = in.read_int(), true;
    if (id == 9) return column.data_begin = in.read_int(), true;
    if (id == 11) return column.dictionary_begin = in.read_int(), true;
    return false;
  });
}

void read_chunk(ThriftReader& in, ParquetGroup& group) {
  ParquetColumnMeta column;
  std::string path;
  in.read_struct([&](int id, Type type) {
    if (id == 1 || id == 8) column.elsewhere = true;
    if (id != 3 || type != Type::kStruct) return false;
    read_column_meta(in, column, path);
    return true;
  });
  group.columns.emplace(std::move(path), column);
}

ParquetGroup read_group(ThriftReader& in) {
  ParquetGroup group;
  in.read_struct([&](int id, Type type) {
    if (id == 3 && type == Type::kI64) return group.num_rows = in.read_int(), true;
    if (id != 1 || type != Type::kList) return false;
    in.read_list(Type::kStruct, [&] { read_chunk(in, group); });
    return true;
  });
  return group;
}

/// Builds the tree of the schema, whose elements are written parents first.
class SchemaTree {
 public:
  SchemaTree(const std::vector<SchemaElement>& elements, const std::string& place)
      : elements_(elements), place_(place) {}

  ParquetNode take() {
    if (elements_.empty()) fail(ExitCode::kUnusable, "{} has no schema; copy or download it again", place_);
    ParquetNode root;
    next_ = 1;
    for (int64_t i = 0; i < elements_[0].num_children; ++i) root.children.push_back(node(root, 0));
    return root;
  }

 private:
  ParquetNode node(const ParquetNode& above, int depth) {
    constexpr int kMostDepth = 64;
    if (next_ >= elements_.size() || depth > kMostDepth) damaged();
    const SchemaElement& element = elements_[next_++];
    ParquetNode made;
    made.name = element.name;
    made.path = above.path.empty() ? made.name : above.path + "." + made.name;
    made.is_optional = element.repetition == kOptional;
    made.is_repeated = element.repetition == kRepeated;
    made.definition = above.definition + (made.is_optional || made.is_repeated ? 1 : 0);
    made.repetition = above.repetition + (made.is_repeated ? 1 : 0);
    if (element.type) {
      if (*element.type < 0 || *element.type > static_cast<int64_t>(ParquetType::kFixedBytes)) damaged();
      made.type = static_cast<ParquetType>(*element.type);
      made.is_decimal = element.is_decimal;
      return made;
    }
    for (int64_t i = 0; i < element.num_children; ++i) made.children.push_back(node(made, depth + 1));
    made.is_list = element.is_list && made.children.size() == 1 && made.children[0].is_repeated;
    return made;
  }

  [[noreturn]] void damaged() const {
    fail(ExitCode::kUnusable, "{} has a damaged schema; copy or download it again", place_);
  }

  const std::vector<SchemaElement>& elements_;
  const std::string& place_;
  size_t next_ = 0;
};

ParquetChunk checked_chunk(const ParquetNode& column, const ParquetColumnMeta& meta, int64_t num_rows,
                           int64_t pages_end, const std::string& place) {
  if (meta.elsewhere)
    fail(ExitCode::kUnusable, "{}: column \"{}\" is encrypted or in another file, which is not read", place,
         column.path);
  if (meta.codec == static_cast<int64_t>(ParquetCodec::kLzo))
    fail(ExitCode::kUnusable,
         "{}: column \"{}\" is compressed with LZO, which is not read; write the file with zstd, snappy, "
         "gzip, "
         "brotli or LZ4",
         place, column.path);
  if (meta.codec < 0 || meta.codec > static_cast<int64_t>(ParquetCodec::kLz4Raw))
    fail(ExitCode::kUnusable, "{}: compression {} of column \"{}\" is not known", place, meta.codec,
         column.path);
  if (num_rows == 0 && meta.num_values == 0) return {};
  ParquetChunk chunk{.codec = static_cast<ParquetCodec>(meta.codec), .num_values = meta.num_values};
  chunk.begin =
      meta.dictionary_begin > 0 ? std::min(meta.dictionary_begin, meta.data_begin) : meta.data_begin;
  chunk.end = meta.size < 0 || meta.size > pages_end ? -1 : chunk.begin + meta.size;
  constexpr int64_t kMagic = 4;
  const bool has_lists = column.repetition > 0;
  if (chunk.begin < kMagic || chunk.begin > pages_end || chunk.end < chunk.begin || chunk.end > pages_end ||
      num_rows < 0 || (has_lists ? chunk.num_values < num_rows : chunk.num_values != num_rows))
    fail(ExitCode::kUnusable,
         "{}: the footer says impossible things of column \"{}\"; copy or download it again", place,
         column.path);
  return chunk;
}

}  // namespace

const char* kind_of_values(const ParquetNode& column) {
  if (column.is_decimal) return "decimals";
  switch (*column.type) {
    case ParquetType::kBoolean: return "booleans";
    case ParquetType::kInt32:
    case ParquetType::kInt64: return "whole numbers";
    case ParquetType::kInt96: return "96-bit timestamps";
    case ParquetType::kFloat:
    case ParquetType::kDouble: return "floats";
    case ParquetType::kBytes: return "texts";
    case ParquetType::kFixedBytes: return "bytes of a fixed length";
  }
  return "values of another type";
}

std::vector<ParquetChunk> ParquetFooter::chunks(const ParquetNode& column, const std::string& place) const {
  std::vector<ParquetChunk> found;
  for (const ParquetGroup& group : groups) {
    const auto meta = group.columns.find(column.path);
    if (meta == group.columns.end())
      fail(ExitCode::kUnusable, "{}: a group of rows lacks column \"{}\"; copy or download it again", place,
           column.path);
    found.push_back(checked_chunk(column, meta->second, group.num_rows, pages_end, place));
  }
  return found;
}

ParquetFooter read_parquet_footer(std::string_view bytes, int64_t pages_end, const std::string& place) {
  ThriftReader in(bytes);
  ParquetFooter footer;
  footer.pages_end = pages_end;
  std::vector<SchemaElement> elements;
  in.read_struct([&](int id, Type type) {
    if (id == 3 && type == Type::kI64) return footer.num_rows = in.read_int(), true;
    if (type != Type::kList) return false;
    if (id == 2) return in.read_list(Type::kStruct, [&] { elements.push_back(read_element(in)); }), true;
    if (id == 4) return in.read_list(Type::kStruct, [&] { footer.groups.push_back(read_group(in)); }), true;
    return false;
  });
  footer.schema = SchemaTree(elements, place).take();
  int64_t rows = 0;
  for (const ParquetGroup& group : footer.groups)
    if (group.num_rows < 0 || __builtin_add_overflow(rows, group.num_rows, &rows)) rows = -1;
  if (rows != footer.num_rows)
    fail(ExitCode::kUnusable, "{} claims {} rows, its groups have {}; copy or download it again", place,
         footer.num_rows, rows);
  return footer;
}

}  // namespace tycho
