// From page to page. What is wrong with one is said with its file and row.
#include "trainer/data/parquet/parquet_records.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/parquet/parquet_footer.h"
#include "trainer/data/parquet/parquet_page.h"

namespace tycho {
namespace {

constexpr int64_t kTailBytes = 8;  // the footer's length, and "PAR1"
constexpr int64_t kMostFooterBytes = int64_t{256} << 20;
constexpr int64_t kFirstHeaderBytes = 4 << 10, kMostHeaderBytes = 16 << 20;

std::string read_bytes(const std::string& path, int64_t offset, int64_t count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  read_exactly(path, offset, bytes.data(), bytes.size());
  return bytes;
}

/// The words of an Error without the tag in front.
std::string_view reason(const Error& error) {
  const std::string_view what = error.what();
  return what.substr(what.starts_with('[') ? what.find(' ') + 1 : 0);
}

class ParquetRecords final : public RecordSource {
 public:
  ParquetRecords(const std::string& path, const std::string& name) : path_(path), name_(name) { open(); }

  bool next(std::string& text) override {
    if (row_ == column_.num_rows) return false;
    std::optional<std::string_view> value;
    try {
      while (!page_ || page_->num_left() == 0) next_page();
      value = page_->next();
    } catch (const Error& error) {
      fail(ExitCode::kUnusable, "[data] {}: row {} cannot be read: {}; copy or download it again", path_,
           row_ + 1, reason(error));
    }
    if (!value)
      fail(ExitCode::kUnusable,
           "[data] {}: column \"{}\" is null in row {}; leave such rows out when you write the file, or name "
           "another column: --field NAME",
           path_, name_, row_ + 1);
    text = *value;
    ++row_;
    return true;
  }

  int64_t file_bytes() const override { return row_ == column_.num_rows ? num_bytes_ : at_; }

 private:
  void open() {
    std::error_code error;
    num_bytes_ = static_cast<int64_t>(std::filesystem::file_size(path_, error));
    if (error) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path_, error.message());
    const std::string tail = num_bytes_ < 12 ? "" : read_bytes(path_, num_bytes_ - kTailBytes, kTailBytes);
    if (tail.ends_with("PARE")) fail(ExitCode::kUnusable, "[data] {} is encrypted, which is not read", path_);
    uint32_t footer_bytes = 0;
    if (!tail.empty()) std::memcpy(&footer_bytes, tail.data(), sizeof footer_bytes);
    const int64_t pages_end = num_bytes_ - kTailBytes - footer_bytes;
    if (!tail.ends_with("PAR1") || footer_bytes > kMostFooterBytes || pages_end < 4)
      fail(ExitCode::kUnusable,
           "[data] {} is not a whole Parquet file: its end is missing; copy or download it again", path_);
    const std::string footer = read_bytes(path_, pages_end, footer_bytes);
    try {
      column_ = read_parquet_footer(footer, name_, pages_end, "[data] " + path_);
    } catch (const Error& broken) {
      if (std::string_view(broken.what()).starts_with("[data]")) throw;
      fail(ExitCode::kUnusable, "[data] {}: its footer cannot be read: {}; copy or download it again", path_,
           reason(broken));
    }
  }

  void next_page() {
    page_.reset();
    while (chunk_ < column_.chunks.size() && chunk_left_ == 0) {
      const ParquetChunk& chunk = column_.chunks[chunk_++];
      at_ = chunk.begin;
      chunk_left_ = chunk.num_values;
      dictionary_.clear();
    }
    const ParquetChunk& chunk = column_.chunks[chunk_ - 1];
    const ParquetPageHeader header = read_header(chunk);
    const int64_t body_at = at_ + static_cast<int64_t>(header.header_bytes);
    if (header.stored_bytes > chunk.end - body_at)
      fail(ExitCode::kUnusable, "[parquet] a page goes beyond its column");
    at_ = body_at + header.stored_bytes;
    if (header.kind == ParquetPageKind::kIndex) return;
    const std::string stored = read_bytes(path_, body_at, header.stored_bytes);
    if (header.kind == ParquetPageKind::kDictionary) {
      dictionary_body_ = decompress_page(header, chunk.codec, stored);
      dictionary_ = read_dictionary(header, dictionary_body_);
      return;
    }
    if (header.num_values > chunk_left_)
      fail(ExitCode::kUnusable, "[parquet] a page has more values than its group has rows");
    body_ = decompress_page(header, chunk.codec, stored);
    page_.emplace(header, column_.max_definition, body_, dictionary_);
    chunk_left_ -= header.num_values;
  }

  /// A header is small, but for the smallest and largest value that it may repeat.
  ParquetPageHeader read_header(const ParquetChunk& chunk) const {
    for (int64_t most = kFirstHeaderBytes;; most *= 16) {
      const int64_t count = std::min(most, chunk.end - at_);
      try {
        return read_page_header(read_bytes(path_, at_, count));
      } catch (const Error&) {
        if (count < most || most >= kMostHeaderBytes) throw;
      }
    }
  }

  std::string path_, name_;
  int64_t num_bytes_ = 0, at_ = 0;  // of the file
  ParquetTextColumn column_;
  size_t chunk_ = 0;        // the next one
  int64_t chunk_left_ = 0;  // values of pages that have not been read
  int64_t row_ = 0;         // the next one
  std::string body_, dictionary_body_;
  std::vector<std::string_view> dictionary_;  // in dictionary_body_
  std::optional<ParquetTexts> page_;          // in body_
};

}  // namespace

std::unique_ptr<RecordSource> open_parquet(const std::string& path, const std::string& name) {
  return std::make_unique<ParquetRecords>(path, name);
}

}  // namespace tycho
