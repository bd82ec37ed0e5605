// One thread reads rows, a block at a time; several encode them.
#include "trainer/data/chat/parquet_chat.h"

#include <iterator>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/encode_lines.h"

namespace tycho {
namespace {

constexpr size_t kParquetRowsAtOnce = 8192;

std::string encoding_of(const ParquetNode& node) {
  if (!node.type || node.is_repeated) return "json";
  return node.type == ParquetType::kBytes ? "str" : "of other values than texts and lists";
}

}  // namespace

ParquetChat::ParquetChat(const std::string& path) : file_(std::make_shared<const ParquetFile>(path)) {
  std::vector<MdsColumn> columns;
  for (const ParquetNode& node : file_->footer().schema.children)
    columns.push_back({node.name, encoding_of(node)});
  columns_.emplace(columns, path);
  rows_.emplace(file_, columns_->names());
}

bool ParquetChat::next(std::vector<RowCell>& cells) {
  if (!rows_->next(values_)) return false;
  std::vector<std::string> texts;
  for (Json& value : values_)
    texts.push_back(value.is_string() ? std::move(value.get_ref<std::string&>()) : value.dump());
  cells = columns_->cells(std::move(texts));
  return true;
}

std::string ParquetChat::place(int64_t row) const {
  return fmt::format("{}, row {}", file_->path(), row + 1);
}

std::vector<ChatExample> encode_parquet_rows(const std::string& path, const ChatEncoder& encoder,
                                             int64_t vocab_size, const std::atomic<int>& stop,
                                             SkippedRows* skipped) {
  ParquetChat chat(path);
  std::vector<ChatExample> examples;
  std::vector<RowCell> cells;
  int64_t first = 0;
  for (bool more = true; more;) {
    std::vector<std::vector<RowCell>> rows;
    while (rows.size() < kParquetRowsAtOnce && stop == 0 && (more = chat.next(cells)))
      rows.push_back(std::move(cells));
    std::vector<ChatExample> made = encode_rows(
        rows.size(),
        [&](size_t i) {
          return chat.columns().encode(rows[i], encoder, vocab_size,
                                       chat.place(first + static_cast<int64_t>(i)));
        },
        path, stop, skipped);
    first += std::ssize(rows);
    std::move(made.begin(), made.end(), std::back_inserter(examples));
  }
  return examples;
}

}  // namespace tycho
