// Levels tell where lists begin and end, and what is null; all columns below a list must agree.
// (https://github.com/apache/parquet-format/blob/master/README.md#nested-encoding)
#include "trainer/data/sources/parquet/parquet_rows.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

[[noreturn]] void disagree() { fail(ExitCode::kUnusable, "[parquet] its columns disagree"); }

Json json_of(const ParquetValue& value, ParquetType type) {
  switch (type) {
    case ParquetType::kBoolean: return value.whole != 0;
    case ParquetType::kInt32:
    case ParquetType::kInt64: return value.whole;
    case ParquetType::kFloat:
    case ParquetType::kDouble: return value.number;
    default: break;
  }
  if (const size_t bad = find_not_text(value.text); bad != std::string_view::npos)
    fail(ExitCode::kUnusable, "[parquet] a text is not UTF-8 at byte {}", bad);
  return std::string(value.text);
}

}  // namespace

/// Node of the schema with the columns below it.
struct ParquetRows::Branch {
  Branch(const ParquetFile& file, const ParquetNode& of) : node(of) {
    if (node.type == ParquetType::kInt96 || node.type == ParquetType::kFixedBytes || node.is_decimal)
      fail(ExitCode::kUnusable,
           "[data] {}: column \"{}\" holds {}, which are not read; write it as texts, or leave it out",
           file.path(), node.path, kind_of_values(node));
    if (node.type) column = std::make_unique<ParquetColumn>(file, node);
    for (const ParquetNode& child : node.children) children.push_back(std::make_unique<Branch>(file, child));
    if (!node.type && children.empty())
      fail(ExitCode::kUnusable, "[data] {}: column \"{}\" is a struct without members", file.path(),
           node.path);
    first = node.type ? column.get() : children[0]->first;
  }

  const ParquetEntry& peek() const {
    const auto& entry = first->peek();
    if (!entry) disagree();
    return *entry;
  }
  /// Takes one entry of every column, which together stand for a missing value.
  void skip() const {
    peek();
    if (column) column->take();
    for (const auto& child : children) child->skip();
  }
  int64_t position() const { return first->position(); }

  /// Returns the next value, or the list of values if the node is repeated.
  Json value() const {
    if (!node.is_repeated) return single();
    Json list = Json::array();
    if (peek().definition < node.definition) {
      skip();
      return list;
    }
    do {
      list.push_back(single());
    } while (first->peek() && peek().repetition == node.repetition);
    return list;
  }

  Json single() const {
    const ParquetEntry& entry = peek();
    if (node.is_optional && entry.definition < node.definition) {
      skip();
      return nullptr;
    }
    if (node.type) {
      if (entry.definition != node.definition) disagree();
      Json made = json_of(entry.value, *node.type);
      column->take();
      return made;
    }
    return node.is_list ? list() : object(entry.repetition);
  }

  Json object(int repetition) const {
    Json made = Json::object();
    for (const auto& child : children) {
      if (child->peek().repetition != repetition) disagree();
      if (Json member = child->value(); !member.is_null()) made[child->node.name] = std::move(member);
    }
    return made;
  }

  /// Returns a list. Items wrapped into a struct of one member each are unwrapped, unless the name says that
  /// the structs are the items.
  Json list() const {
    const Branch& items = *children[0];
    Json made = items.value();
    const bool wrapped =
        items.children.size() == 1 && items.node.name != "array" && items.node.name != node.name + "_tuple";
    if (!wrapped) return made;
    const std::string& member = items.children[0]->node.name;
    for (Json& item : made) item = item.contains(member) ? Json(std::move(item[member])) : Json(nullptr);
    return made;
  }

  const ParquetNode& node;
  std::unique_ptr<ParquetColumn> column;  // for nodes with values
  std::vector<std::unique_ptr<Branch>> children;
  ParquetColumn* first = nullptr;  // first column below this node, whose levels say what exists
};

ParquetRows::ParquetRows(std::shared_ptr<const ParquetFile> file, const std::vector<std::string>& columns)
    : file_(std::move(file)) {
  for (const std::string& name : columns) {
    const auto& all = file_->footer().schema.children;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const ParquetNode& node) { return node.name == name; });
    if (found == all.end()) file_->fail_column('"' + name + '"', "Name another one");
    columns_.push_back(std::make_unique<Branch>(*file_, *found));
  }
}

ParquetRows::~ParquetRows() = default;

bool ParquetRows::next(std::vector<Json>& values) {
  if (row_ == file_->footer().num_rows) return false;
  try {
    read(values);
  } catch (const Error& error) {
    file_->fail_row(row_, error);
  }
  ++row_;
  return true;
}

void ParquetRows::read(std::vector<Json>& values) {
  values.clear();
  for (const auto& column : columns_) {
    if (column->peek().repetition != 0) disagree();
    values.push_back(column->value());
  }
}

int64_t ParquetRows::file_bytes() const {
  if (row_ == file_->footer().num_rows || columns_.empty()) return file_->num_bytes();
  return columns_.back()->position();
}

}  // namespace tycho
