// A text inside structs is reached through their columns.
#include "trainer/data/sources/arrow/arrow_records.h"

#include <algorithm>
#include <utility>

#include "trainer/data/rows/skipped_rows.h"

namespace tycho {
namespace {

constexpr const char* kNameIt = "Name the one that contains the text: --field NAME";

/// Returns the places of the columns, the outermost first, that lead to `field`.
std::vector<size_t> way_to(const ArrowField& root, const ArrowField* field) {
  for (size_t i = 0; i < root.children.size(); ++i) {
    if (&root.children[i] == field) return {i};
    std::vector<size_t> below = way_to(root.children[i], field);
    if (below.empty()) continue;
    below.insert(below.begin(), i);
    return below;
  }
  return {};
}

class ArrowRecords final : public RecordSource {
 public:
  ArrowRecords(const std::string& path, const std::string& name) : file_(path), name_(name) {
    const ArrowField* field = find_field(file_.schema(), name);
    if (field == nullptr) file_.fail_column('"' + name + '"', kNameIt);
    if (!field->is_text)
      fail(ExitCode::kUnusable,
           "[data] {}: column \"{}\" must hold texts, but holds {}; name another one: --field NAME", path,
           name, kind_of_values(*field));
    way_ = way_to(file_.schema(), field);
    file_.choose({way_[0]});
  }

  bool next(std::string& text) override {
    if (!file_.next()) return false;
    bool is_null = false;
    try {
      ArrowRoom room = row_room();
      ArrowColumn* column = &file_.column(0);
      for (size_t i = 1; i < way_.size() && !is_null; ++i) {
        is_null = column->is_null(file_.place());
        column = &column->children[way_[i]];
      }
      const auto found = is_null ? std::nullopt : arrow_text(*column, file_.place(), room);
      is_null = !found;
      if (found) text = *found;
    } catch (const Error& error) {
      file_.fail_row(error);
    }
    if (is_null)
      throw BadRow(
          fmt::format("[data] {}: column \"{}\" is null in row {}; leave such rows out when you write the "
                      "file, or name another column: --field NAME",
                      file_.path(), name_, file_.row() + 1));
    return true;
  }

  int64_t file_bytes() const override { return file_.file_bytes(); }

 private:
  ArrowFile file_;
  std::string name_;
  std::vector<size_t> way_;
};

}  // namespace

std::unique_ptr<RecordSource> open_arrow(const std::string& path, const std::string& name) {
  return std::make_unique<ArrowRecords>(path, name);
}

ArrowRows::ArrowRows(std::shared_ptr<ArrowFile> file, const std::vector<std::string>& columns)
    : file_(std::move(file)), num_columns_(columns.size()) {
  std::vector<size_t> chosen;
  const auto& all = file_->schema().children;
  for (const std::string& name : columns) {
    const auto found = std::ranges::find_if(all, [&](const ArrowField& field) { return field.name == name; });
    if (found == all.end()) file_->fail_column('"' + name + '"', "Name another one");
    chosen.push_back(static_cast<size_t>(found - all.begin()));
  }
  file_->choose(chosen);
}

bool ArrowRows::next(std::vector<Json>& values) {
  if (!file_->next()) return false;
  values.clear();
  try {
    ArrowRoom room = row_room();
    for (size_t i = 0; i < num_columns_; ++i)
      values.push_back(arrow_value(file_->column(i), file_->place(), room));
  } catch (const Error& error) {
    file_->fail_row(error);
  }
  return true;
}

}  // namespace tycho
