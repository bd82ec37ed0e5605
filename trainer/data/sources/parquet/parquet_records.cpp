// A column of texts has one entry for each row.
#include "trainer/data/sources/parquet/parquet_records.h"

#include "trainer/base/error.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/parquet/parquet_column.h"

namespace tycho {
namespace {

constexpr const char* kNameIt = "Name the one that contains the text: --field NAME";

/// Returns the column of values with this path; nullptr if there is none.
const ParquetNode* find_leaf(const ParquetNode& node, const std::string& path) {
  for (const ParquetNode& child : node.children) {
    if (child.type && child.path == path) return &child;
    if (const ParquetNode* found = child.type ? nullptr : find_leaf(child, path)) return found;
  }
  return nullptr;
}

const ParquetNode& text_column(const ParquetFile& file, const std::string& name) {
  const ParquetNode* column = find_leaf(file.footer().schema, name);
  if (column == nullptr) file.fail_column('"' + name + '"', kNameIt);
  if (column->repetition > 0 || column->type != ParquetType::kBytes || column->is_decimal)
    fail(ExitCode::kUnusable,
         "[data] {}: column \"{}\" must hold texts, but holds {}; name another one: --field NAME",
         file.path(), name, column->repetition > 0 ? "lists" : kind_of_values(*column));
  return *column;
}

class ParquetRecords final : public RecordSource {
 public:
  ParquetRecords(const std::string& path, const std::string& name)
      : file_(path), leaf_(text_column(file_, name)), column_(file_, leaf_) {}

  bool next(std::string& text) override {
    if (row_ == file_.footer().num_rows) return false;
    bool is_null = false;
    try {
      const auto& entry = column_.peek();
      if (!entry) fail(ExitCode::kUnusable, "[parquet] its column ends too early");
      is_null = entry->definition != leaf_.definition;
      if (!is_null) text = entry->value.text;
      column_.take();
    } catch (const Error& error) {
      file_.fail_row(row_, error);
    }
    ++row_;
    if (is_null)
      throw BadRow(
          fmt::format("[data] {}: column \"{}\" is null in row {}; leave such rows out when you write the "
                      "file, or name another column: --field NAME",
                      file_.path(), leaf_.path, row_));
    return true;
  }

  int64_t file_bytes() const override {
    return row_ == file_.footer().num_rows ? file_.num_bytes() : column_.position();
  }

 private:
  ParquetFile file_;
  const ParquetNode& leaf_;
  ParquetColumn column_;
  int64_t row_ = 0;  // the next one
};

}  // namespace

std::unique_ptr<RecordSource> open_parquet(const std::string& path, const std::string& name) {
  return std::make_unique<ParquetRecords>(path, name);
}

}  // namespace tycho
