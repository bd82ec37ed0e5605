// One class per kind of table.
#include "trainer/data/chat/row_table.h"

#include <optional>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/sources/arrow/arrow_records.h"
#include "trainer/data/sources/csv_reader.h"
#include "trainer/data/sources/parquet/parquet_file.h"
#include "trainer/data/sources/parquet/parquet_rows.h"

namespace tycho {
namespace {

constexpr const char* kOtherValues = "of other values than texts and lists";

std::string encoding_of(const ParquetNode& node) {
  if (!node.type || node.is_repeated) return "json";
  return node.type == ParquetType::kBytes ? "str" : kOtherValues;
}

std::string encoding_of(const ArrowField& field) {
  if (field.is_text) return "str";
  const bool is_nested = field.kind == ArrowKind::kList || field.kind == ArrowKind::kListView ||
                         field.kind == ArrowKind::kFixedList || field.kind == ArrowKind::kStruct;
  return is_nested ? "json" : kOtherValues;
}

const ParquetNode& schema_of(const ParquetFile& file) { return file.footer().schema; }
const ArrowField& schema_of(const ArrowFile& file) { return file.schema(); }

template <class File>
RowColumns columns_of(const File& file) {
  std::vector<MdsColumn> columns;
  for (const auto& field : schema_of(file).children) columns.push_back({field.name, encoding_of(field)});
  return {columns, file.path()};
}

/// Rows that are read as JSON: those of Parquet and Arrow.
template <class File, class Rows>
class JsonTable final : public RowTable {
 public:
  explicit JsonTable(std::shared_ptr<File> file)
      : path_(file->path()), columns_(columns_of(*file)), rows_(std::move(file), columns_.names()) {}

  const RowColumns& columns() const override { return columns_; }
  bool next(std::vector<RowCell>& cells) override {
    if (!rows_.next(values_)) return false;
    ++row_;
    std::vector<std::string> texts;
    for (Json& value : values_)
      texts.push_back(value.is_string() ? std::move(value.get_ref<std::string&>()) : value.dump());
    cells = columns_.cells(std::move(texts));
    return true;
  }
  std::string place() const override { return fmt::format("{}, row {}", path_, row_); }
  int64_t file_bytes() const override { return rows_.file_bytes(); }

 private:
  std::string path_;
  RowColumns columns_;
  Rows rows_;
  std::vector<Json> values_;
  int64_t row_ = 0;
};

class CsvTable final : public RowTable {
 public:
  CsvTable(const std::string& path, char separator) : path_(path), csv_(path, separator) {
    std::vector<MdsColumn> columns;
    for (const std::string& name : csv_.columns()) {
      const bool is_text = name == "prompt" || name == "response" || name == "completion";
      columns.push_back({name, is_text ? "str" : "json"});
    }
    columns_.emplace(columns, path);
    for (const std::string& name : columns_->names())
      csv_.column(name);  // throws if two columns have the
                          // name
  }

  const RowColumns& columns() const override { return *columns_; }
  bool next(std::vector<RowCell>& cells) override {
    if (!csv_.next(values_)) return false;
    const std::vector<std::string_view> views(values_.begin(), values_.end());
    cells = columns_->cells(views);
    return true;
  }
  std::string place() const override { return fmt::format("{}:{}", path_, csv_.line()); }
  int64_t file_bytes() const override { return csv_.file_bytes(); }

 private:
  std::string path_;
  CsvReader csv_;
  std::optional<RowColumns> columns_;
  std::vector<std::string> values_;
};

class MdsTable final : public RowTable {
 public:
  MdsTable(MdsIndex index, const MakeShardSource& make_source, const std::string& place)
      : reader_(std::move(index), make_source), columns_(reader_.index().shards[0].columns, place) {}

  const RowColumns& columns() const override { return columns_; }
  bool next(std::vector<RowCell>& cells) override {
    const MdsIndex& index = reader_.index();
    if (sample_ == index.num_samples()) return false;
    cells = columns_.cells(reader_.read(sample_++));
    if (sample_ == index.first_sample[shard_ + 1]) bytes_ += index.shards[shard_++].stored_bytes();
    return true;
  }
  std::string place() const override { return reader_.name_of(sample_ - 1); }
  int64_t file_bytes() const override { return bytes_; }

 private:
  MdsReader reader_;
  RowColumns columns_;
  int64_t sample_ = 0, bytes_ = 0;  // bytes_: of the shards that have been read
  size_t shard_ = 0;
};

}  // namespace

std::unique_ptr<RowTable> open_parquet_rows(const std::string& path) {
  return std::make_unique<JsonTable<const ParquetFile, ParquetRows>>(
      std::make_shared<const ParquetFile>(path));
}

std::unique_ptr<RowTable> open_arrow_rows(const std::string& path) {
  return std::make_unique<JsonTable<ArrowFile, ArrowRows>>(std::make_shared<ArrowFile>(path));
}

std::unique_ptr<RowTable> open_csv_rows(const std::string& path, char separator) {
  return std::make_unique<CsvTable>(path, separator);
}

std::unique_ptr<RowTable> open_mds_rows(MdsIndex index, const MakeShardSource& make_source,
                                        const std::string& place) {
  return std::make_unique<MdsTable>(std::move(index), make_source, place);
}

}  // namespace tycho
