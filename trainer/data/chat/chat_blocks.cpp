// A block is some lines of a file as they were read, or some rows of a table.
#include "trainer/data/chat/chat_blocks.h"

#include <map>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/chat/encode_rows.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/document_reader.h"
#include "trainer/data/sources/lent_file.h"

namespace tycho {
namespace {

// The state of a killed conversion counts blocks of these sizes.
constexpr size_t kRowsAtOnce = 4096;

class LineBlock final : public ChatBlock {
 public:
  LineBlock(std::string path, std::string weights, TextChunk chunk)
      : path_(std::move(path)),
        weights_(std::move(weights)),
        chunk_(std::move(chunk)),
        lines_(split_lines(chunk_.text, chunk_.line)) {}
  LineBlock(const LineBlock&) = delete;  // lines are in the chunk

  size_t size() const override { return lines_.size(); }
  ChatRow row(size_t i) const override {
    return parse_chat_row(lines_[i].text, fmt::format("{}:{}", path_, lines_[i].number), weights_);
  }
  ChatExample encode(size_t i, const ChatEncoder& encoder, int64_t /*vocab_size*/) const override {
    const ChatRow read = row(i);
    ChatExample example = encoder.encode(read);
    example.weight = read.weight;
    return example;
  }
  int64_t text_bytes(size_t i) const override { return std::ssize(lines_[i].text); }

 private:
  std::string path_, weights_;
  TextChunk chunk_;
  std::vector<NumberedLine> lines_;
};

class LineBlocks final : public ChatBlocks {
 public:
  LineBlocks(const InputFile& file, std::string weights)
      : files_({file}), reader_(files_, {}), weights_(std::move(weights)) {}

  std::unique_ptr<ChatBlock> next() override {
    auto chunk = reader_.next();
    if (!chunk) return nullptr;
    file_bytes_ = chunk->file_bytes;
    return std::make_unique<LineBlock>(files_[0].path, weights_, std::move(*chunk));
  }
  int64_t file_bytes() const override { return file_bytes_; }
  bool has_tokens() const override { return false; }

 private:
  std::vector<InputFile> files_;
  DocumentReader reader_;
  std::string weights_;
  int64_t file_bytes_ = 0;
};

struct PlacedCells {
  std::vector<RowCell> cells;
  std::string place;
  std::string error;  // message of the Error if the row cannot be used, else ""
};

class TableBlock final : public ChatBlock {
 public:
  TableBlock(const RowColumns& columns, std::vector<PlacedCells> rows)
      : columns_(columns), rows_(std::move(rows)) {}

  size_t size() const override { return rows_.size(); }
  ChatRow row(size_t i) const override { return columns_.row(good(i).cells, rows_[i].place); }
  ChatExample encode(size_t i, const ChatEncoder& encoder, int64_t vocab_size) const override {
    return columns_.encode(good(i).cells, encoder, vocab_size, rows_[i].place);
  }
  int64_t text_bytes(size_t i) const override {
    int64_t sum = 0;
    for (const RowCell& cell : rows_[i].cells) sum += std::ssize(cell.value);
    return sum;
  }

 private:
  const PlacedCells& good(size_t i) const {
    if (!rows_[i].error.empty()) throw BadRow(rows_[i].error);
    return rows_[i];
  }

  const RowColumns& columns_;
  std::vector<PlacedCells> rows_;
};

class TableBlocks final : public ChatBlocks {
 public:
  explicit TableBlocks(std::unique_ptr<RowTable> table, std::unique_ptr<LentFile> lent = nullptr)
      : lent_(std::move(lent)), table_(std::move(table)) {}

  std::unique_ptr<ChatBlock> next() override {
    if (ended_) return nullptr;
    const int64_t before = table_->file_bytes();
    std::vector<PlacedCells> rows;
    while (rows.size() < kRowsAtOnce && !ended_) {
      PlacedCells row;
      try {
        ended_ = !table_->next(row.cells);
        if (!ended_) row.place = table_->place();
      } catch (const BadRow& bad) {
        row.error = bad.what();
      }
      if (!ended_) rows.push_back(std::move(row));
    }
    file_bytes_ = table_->file_bytes() - before;
    return std::make_unique<TableBlock>(table_->columns(), std::move(rows));
  }
  int64_t file_bytes() const override { return file_bytes_; }
  bool has_tokens() const override { return table_->columns().has_tokens(); }

 private:
  std::unique_ptr<LentFile> lent_;  // outlives the table, which has the file open
  std::unique_ptr<RowTable> table_;
  int64_t file_bytes_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ChatBlocks> open_chat_blocks(std::unique_ptr<RowTable> table) {
  return std::make_unique<TableBlocks>(std::move(table));
}

std::unique_ptr<ChatBlocks> open_chat_blocks(const InputFile& file, const std::string& weights) {
  if (!weights.empty() && file.format != TextFormat::kText && file.format != TextFormat::kJsonl)
    fail(ExitCode::kUnusable,
         "[data] {}: expected JSONL, whose lines can have a weight ({}), got another format: write the rows "
         "as "
         "JSONL, or leave out weights",
         file.path, weights);
  const auto table = [&](const auto& open) {
    auto lent = std::make_unique<LentFile>(file);
    auto rows = open(lent->path());
    return std::make_unique<TableBlocks>(std::move(rows), std::move(lent));
  };
  switch (file.format) {
    case TextFormat::kParquet: return table(open_parquet_rows);
    case TextFormat::kArrow: return table(open_arrow_rows);
    case TextFormat::kCsv: return table([](const std::string& path) { return open_csv_rows(path, ','); });
    case TextFormat::kTsv: return table([](const std::string& path) { return open_csv_rows(path, '\t'); });
    case TextFormat::kDataSet:
      return open_chat_blocks(open_mds_rows(
          read_mds_index(file.path), local_source(VerifyShards::kOnce, RawShards::kInMemory), file.path));
    case TextFormat::kText:
    case TextFormat::kJsonl: break;
  }
  return std::make_unique<LineBlocks>(file, weights);
}

}  // namespace tycho
