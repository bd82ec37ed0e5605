// Pages are read when they are needed; a dictionary comes before the pages that use it.
#include "trainer/data/sources/parquet/parquet_column.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int64_t kFirstHeaderBytes = 4 << 10, kMostHeaderBytes = 16 << 20;

}  // namespace

ParquetColumn::ParquetColumn(const ParquetFile& file, const ParquetNode& column)
    : file_(file), column_(column), chunks_(file.footer().chunks(column, "[data] " + file.path())) {}

const std::optional<ParquetEntry>& ParquetColumn::peek() {
  if (entry_) return entry_;
  while (!page_ || page_->num_left() == 0) {
    if (chunk_left_ == 0 && !open_chunk()) return entry_;
    next_page();
  }
  return entry_ = page_->next();
}

/// Opens the next chunk that has entries. Returns false at the end.
bool ParquetColumn::open_chunk() {
  while (chunk_ < chunks_.size() && chunk_left_ == 0) {
    const ParquetChunk& chunk = chunks_[chunk_++];
    at_ = chunk.begin;
    chunk_left_ = chunk.num_values;
    dictionary_.clear();
  }
  return chunk_left_ > 0;
}

void ParquetColumn::next_page() {
  page_.reset();
  const ParquetChunk& chunk = chunks_[chunk_ - 1];
  const ParquetPageHeader header = read_header(chunk);
  const int64_t body_at = at_ + static_cast<int64_t>(header.header_bytes);
  if (header.stored_bytes > chunk.end - body_at)
    fail(ExitCode::kUnusable, "[parquet] a page goes beyond its column");
  at_ = body_at + header.stored_bytes;
  if (header.kind == ParquetPageKind::kIndex) return;
  const std::string stored = file_.read(body_at, header.stored_bytes);
  if (header.kind == ParquetPageKind::kDictionary) {
    dictionary_body_ = decompress_page(header, chunk.codec, stored);
    dictionary_ = read_dictionary(header, *column_.type, dictionary_body_);
    return;
  }
  if (header.num_values > chunk_left_)
    fail(ExitCode::kUnusable, "[parquet] a page has more values than its group says");
  body_ = decompress_page(header, chunk.codec, stored);
  page_.emplace(header, column_, body_, dictionary_);
  chunk_left_ -= header.num_values;
}

/// Reads a page header. Headers are small, except for the smallest and largest value that they may repeat, so
/// the read grows until it suffices.
ParquetPageHeader ParquetColumn::read_header(const ParquetChunk& chunk) const {
  for (int64_t most = kFirstHeaderBytes;; most *= 16) {
    const int64_t count = std::min(most, chunk.end - at_);
    try {
      return read_page_header(file_.read(at_, count));
    } catch (const Error&) {
      if (count < most || most >= kMostHeaderBytes) throw;
    }
  }
}

}  // namespace tycho
