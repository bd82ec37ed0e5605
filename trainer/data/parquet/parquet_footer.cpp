// FileMetaData of parquet.thrift: the numbers of fields are the format's.
#include "trainer/data/parquet/parquet_footer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/data/parquet/thrift.h"

namespace tycho {
namespace {

using Type = ThriftReader::Type;

constexpr int64_t kByteArray = 6, kRequired = 0, kOptional = 1, kRepeated = 2;

struct SchemaElement {
  std::optional<int64_t> type;  // none: a struct
  int64_t repetition = kRequired, num_children = 0;
  std::string_view name;
};

/// One column of a group of rows.
struct ColumnMeta {
  std::string path;  // joined by dots
  int64_t codec = 0, num_values = 0, size = 0, data_begin = 0, dictionary_begin = 0;
  bool elsewhere = false;  // in another file, or encrypted
};

struct RowGroup {
  std::vector<ColumnMeta> columns;
  int64_t num_rows = 0;
};

struct Footer {
  std::vector<SchemaElement> schema;
  std::vector<RowGroup> groups;
  int64_t num_rows = 0;
};

SchemaElement read_element(ThriftReader& in) {
  SchemaElement element;
  in.read_struct([&](int id, Type type) {
    if (id == 1 && type == Type::kI32) return element.type = in.read_int(), true;
    if (id == 3 && type == Type::kI32) return element.repetition = in.read_int(), true;
    if (id == 4 && type == Type::kBinary) return element.name = in.read_binary(), true;
    if (id == 5 && type == Type::kI32) return element.num_children = in.read_int(), true;
    return false;
  });
  return element;
}

void read_column_meta(ThriftReader& in, ColumnMeta& column) {
  in.read_struct([&](int id, Type type) {
    if (id == 3 && type == Type::kList) {
      in.read_list(Type::kBinary, [&] {
        if (!column.path.empty()) column.path += '.';
        column.path += in.read_binary();
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

ColumnMeta read_chunk(ThriftReader& in) {
  ColumnMeta column;
  in.read_struct([&](int id, Type type) {
    if (id == 1 || id == 8) column.elsewhere = true;
    if (id != 3 || type != Type::kStruct) return false;
    read_column_meta(in, column);
    return true;
  });
  return column;
}

RowGroup read_group(ThriftReader& in) {
  RowGroup group;
  in.read_struct([&](int id, Type type) {
    if (id == 3 && type == Type::kI64) return group.num_rows = in.read_int(), true;
    if (id != 1 || type != Type::kList) return false;
    in.read_list(Type::kStruct, [&] { group.columns.push_back(read_chunk(in)); });
    return true;
  });
  return group;
}

Footer read_footer(std::string_view bytes) {
  ThriftReader in(bytes);
  Footer footer;
  in.read_struct([&](int id, Type type) {
    if (id == 3 && type == Type::kI64) return footer.num_rows = in.read_int(), true;
    if (type != Type::kList) return false;
    if (id == 2) return in.read_list(Type::kStruct, [&] { footer.schema.push_back(read_element(in)); }), true;
    if (id == 4) return in.read_list(Type::kStruct, [&] { footer.groups.push_back(read_group(in)); }), true;
    return false;
  });
  return footer;
}

/// A leaf of the schema.
struct Leaf {
  std::string path;
  int64_t type = 0;
  int max_definition = 0;
  bool repeated = false;
};

/// The schema is a tree, written parents first.
class Leaves {
 public:
  Leaves(const std::vector<SchemaElement>& schema, const std::string& place)
      : schema_(schema), place_(place) {
    if (schema.empty()) fail(ExitCode::kUnusable, "{} has no schema; copy or download it again", place);
    next_ = 1;
    for (int64_t i = 0; i < schema[0].num_children; ++i) add("", 0, false, 0);
  }
  std::vector<Leaf> take() { return std::move(leaves_); }

 private:
  void add(const std::string& above, int definition, bool repeated, int depth) {
    constexpr int kMostDepth = 64;
    if (next_ >= schema_.size() || depth > kMostDepth)
      fail(ExitCode::kUnusable, "{} has a damaged schema; copy or download it again", place_);
    const SchemaElement& element = schema_[next_++];
    const std::string path =
        above.empty() ? std::string(element.name) : above + "." + std::string(element.name);
    if (element.repetition == kOptional || element.repetition == kRepeated) ++definition;
    repeated |= element.repetition == kRepeated;
    if (element.type) return leaves_.push_back({path, *element.type, definition, repeated});
    for (int64_t i = 0; i < element.num_children; ++i) add(path, definition, repeated, depth + 1);
  }

  const std::vector<SchemaElement>& schema_;
  const std::string& place_;
  size_t next_ = 0;
  std::vector<Leaf> leaves_;
};

Leaf find_leaf(const Footer& footer, const std::string& name, const std::string& place) {
  constexpr size_t kShown = 12;
  const std::vector<Leaf> leaves = Leaves(footer.schema, place).take();
  std::vector<std::string> names;
  for (const Leaf& leaf : leaves) {
    if (leaf.path == name) return leaf;
    if (names.size() < kShown) names.push_back('"' + leaf.path + '"');
  }
  fail(ExitCode::kUnusable,
       "{} has no column \"{}\"; it has {}. Name the one that contains the text: --field NAME", place, name,
       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

ParquetChunk checked_chunk(const ColumnMeta& column, int64_t num_rows, int64_t pages_end,
                           const std::string& place) {
  if (column.elsewhere)
    fail(ExitCode::kUnusable, "{}: column \"{}\" is encrypted or in another file, which is not read", place,
         column.path);
  constexpr std::array<std::string_view, 8> kCodecs = {"none",   "snappy", "gzip", "LZO",
                                                       "brotli", "LZ4",    "zstd", "LZ4_RAW"};
  if (column.codec < 0 || column.codec >= std::ssize(kCodecs))
    fail(ExitCode::kUnusable, "{}: compression {} of column \"{}\" is not known", place, column.codec,
         column.path);
  const std::string_view codec = kCodecs[static_cast<size_t>(column.codec)];
  if (codec.starts_with("LZ"))
    fail(ExitCode::kUnusable,
         "{}: column \"{}\" is compressed with {}, which is not read; write the file with zstd, snappy, gzip "
         "or brotli",
         place, column.path, codec);
  if (num_rows == 0 && column.num_values == 0) return {};
  ParquetChunk chunk{.codec = static_cast<ParquetCodec>(column.codec), .num_values = column.num_values};
  chunk.begin =
      column.dictionary_begin > 0 ? std::min(column.dictionary_begin, column.data_begin) : column.data_begin;
  chunk.end = column.size < 0 || column.size > pages_end ? -1 : chunk.begin + column.size;
  constexpr int64_t kMagic = 4;
  if (chunk.begin < kMagic || chunk.begin > pages_end || chunk.end < chunk.begin || chunk.end > pages_end ||
      chunk.num_values != num_rows || num_rows < 0)
    fail(ExitCode::kUnusable,
         "{}: the footer says impossible things of column \"{}\"; copy or download it again", place,
         column.path);
  return chunk;
}

}  // namespace

ParquetTextColumn read_parquet_footer(std::string_view bytes, const std::string& name, int64_t pages_end,
                                      const std::string& place) {
  const Footer footer = read_footer(bytes);
  const Leaf leaf = find_leaf(footer, name, place);
  if (leaf.repeated || leaf.type != kByteArray)
    fail(ExitCode::kUnusable,
         "{}: column \"{}\" must hold texts, but holds {}; name another one: --field NAME", place, name,
         leaf.repeated ? "lists" : "values of another type");
  ParquetTextColumn found{.num_rows = footer.num_rows, .max_definition = leaf.max_definition, .chunks = {}};
  int64_t rows = 0;
  for (const RowGroup& group : footer.groups) {
    const ColumnMeta* meta = nullptr;
    for (const ColumnMeta& column : group.columns)
      if (column.path == name) meta = &column;
    if (meta == nullptr)
      fail(ExitCode::kUnusable, "{}: a group of rows lacks column \"{}\"; copy or download it again", place,
           name);
    found.chunks.push_back(checked_chunk(*meta, group.num_rows, pages_end, place));
    if (__builtin_add_overflow(rows, group.num_rows, &rows)) rows = -1;
  }
  if (rows != found.num_rows)
    fail(ExitCode::kUnusable, "{} claims {} rows, its groups have {}; copy or download it again", place,
         found.num_rows, rows);
  return found;
}

}  // namespace tycho
