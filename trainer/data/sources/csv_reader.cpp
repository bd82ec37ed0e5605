// Reads the file in blocks: a value, or the line end after it, may continue in the next block.
#include "trainer/data/sources/csv_reader.h"

#include <algorithm>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/data/rows/skipped_rows.h"

namespace tycho {
namespace {

constexpr size_t kCsvBlockBytes = 256 << 10, kMaxRowBytes = 256 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string quoted_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", names[i]);
  return text;
}

class CsvTexts final : public RecordSource {
 public:
  CsvTexts(const std::string& path, char separator, const std::string& name)
      : reader_(path, separator), column_(reader_.column(name)) {}

  bool next(std::string& text) override {
    if (!reader_.next(values_)) return false;
    text = std::move(values_[column_]);
    return true;
  }
  int64_t file_bytes() const override { return reader_.file_bytes(); }

 private:
  CsvReader reader_;
  size_t column_;
  std::vector<std::string> values_;
};

}  // namespace

CsvReader::CsvReader(const std::string& path, char separator)
    : path_(path), separator_(separator), source_(open_bytes(path)) {
  while (block_.size() < kByteOrderMark.size() && more()) {
  }
  if (block_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  if (!read_row(columns_))
    fail(ExitCode::kUnusable, "[data] {} is empty: its first line must name its columns", path);
}

size_t CsvReader::column(const std::string& name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end())
    fail(ExitCode::kUnusable,
         "[data] {} has no column \"{}\"; its first line names {}, separated by {}. Name the one that "
         "contains the text: --field NAME",
         path_, name, quoted_names(columns_), separator_ == '\t' ? "tabs" : "commas");
  if (std::find(found + 1, columns_.end(), name) != columns_.end())
    fail(ExitCode::kUnusable, "[data] {} has two columns \"{}\": rename one of them", path_, name);
  return static_cast<size_t>(found - columns_.begin());
}

bool CsvReader::next(std::vector<std::string>& values) {
  if (!read_row(values)) return false;
  if (values.size() != columns_.size())
    throw BadRow(fmt::format(
        "[data] {}:{} has {} values, and the first line names {} columns: put values that "
        "contain {} or line breaks into quotes",
        path_, row_line_, values.size(), columns_.size(), separator_ == '\t' ? "tabs" : "commas"));
  return true;
}

/// Reads more bytes into the block, which drops those that have been read. Returns false at the end of the
/// file.
bool CsvReader::more() {
  block_.erase(0, at_);
  at_ = 0;
  const size_t before = block_.size();
  block_.resize(before + kCsvBlockBytes);
  block_.resize(before + source_->read(block_.data() + before, kCsvBlockBytes));
  row_bytes_ += block_.size() - before;
  if (row_bytes_ > kMaxRowBytes)
    fail(ExitCode::kUnusable, "[data] {}:{} begins a row of more than {} MiB: is a closing quote missing?",
         path_, row_line_, kMaxRowBytes >> 20);
  return block_.size() > before;
}

/// Returns the next byte without taking it; -1 at the end.
int CsvReader::peek() {
  if (at_ == block_.size() && !more()) return -1;
  return static_cast<uint8_t>(block_[at_]);
}

/// Takes LF, CR LF or CR.
void CsvReader::take_line_end() {
  ++line_;
  if (block_[at_++] == '\r' && peek() == '\n') ++at_;
}

void CsvReader::read_quoted(std::string& value) {
  ++at_;
  while (true) {
    if (peek() < 0)
      fail(ExitCode::kUnusable,
           "[data] {} ends inside quotes, in the row that begins in line {}: close them, or copy the file "
           "again",
           path_, row_line_);
    const size_t quote = std::min(block_.find('"', at_), block_.size());
    const auto part = std::string_view(block_).substr(at_, quote - at_);
    line_ += std::count(part.begin(), part.end(), '\n');
    value += part;
    at_ = quote;
    if (at_ == block_.size()) continue;
    ++at_;
    if (peek() != '"') return;
    value += '"';
    ++at_;
  }
}

void CsvReader::read_plain(std::string& value) {
  const char ends[] = {separator_, '\r', '\n'};
  while (peek() >= 0) {
    const size_t end = std::min(block_.find_first_of(ends, at_, sizeof ends), block_.size());
    value.append(block_, at_, end - at_);
    at_ = end;
    if (at_ < block_.size()) return;
  }
}

bool CsvReader::read_row(std::vector<std::string>& values) {
  values.clear();
  while (peek() == '\r' || peek() == '\n') take_line_end();
  if (peek() < 0) return false;
  row_line_ = line_;
  row_bytes_ = block_.size() - at_;
  while (true) {
    std::string& value = values.emplace_back();
    peek() == '"' ? read_quoted(value) : read_plain(value);
    const int next = peek();
    if (next < 0) return true;
    if (next == '\r' || next == '\n') return take_line_end(), true;
    if (next != separator_)
      fail(ExitCode::kUnusable,
           "[data] {}:{} continues after a closing quote: double the quotes inside a quoted value", path_,
           line_);
    ++at_;
  }
}

std::unique_ptr<RecordSource> open_csv(const std::string& path, char separator, const std::string& name) {
  return std::make_unique<CsvTexts>(path, separator, name);
}

}  // namespace tycho
