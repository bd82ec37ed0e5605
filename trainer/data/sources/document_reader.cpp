// One pass over the bytes: decompress, check, normalise line ends, cut.
#include "trainer/data/sources/document_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/text/utf8.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/arrow/arrow_records.h"
#include "trainer/data/sources/csv_reader.h"
#include "trainer/data/sources/json_line.h"
#include "trainer/data/sources/parquet/parquet_records.h"
#include "trainer/data/sources/safe_cut.h"

namespace tycho {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kLinesBytes = 1 << 20;       // JSONL, or rows, in one chunk
constexpr size_t kWordsBytes = 1 << 20;       // text in one chunk that is cut at words
constexpr size_t kPieceCharacters = 1000000;  // LLM Foundry's file.read(1000000)

[[noreturn]] void not_text(const std::string& path, std::string_view where, int64_t offset, uint8_t byte) {
  fail(ExitCode::kUnusable, "[data] {} is {} at byte {}{} (0x{:02x}): {}", path,
       byte == 0 ? "binary" : "not UTF-8", offset, where, byte,
       offset == 0 && byte >= 0xFE ? "it looks like UTF-16; convert it first: iconv -f UTF-16 -t UTF-8"
                                   : "save it as UTF-8, or leave it out");
}

bool continues_character(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += !continues_character(c);
  return count;
}

/// Appends text, with CR LF and CR replaced by LF. Requires that the text does not end in CR, unless the file
/// does.
void append_universal(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t cr = text.find('\r');
    out.append(text.substr(0, cr));
    if (cr == std::string_view::npos) return;
    out += '\n';
    text.remove_prefix(cr + (cr + 1 < text.size() && text[cr + 1] == '\n' ? 2 : 1));
  }
}

std::string_view text_of_row(const TextChunk& chunk, size_t i, const std::string& path) {
  if (const auto bad = chunk.bad_rows.find(i); bad != chunk.bad_rows.end()) throw BadRow(bad->second);
  const std::string_view row = chunk.rows[i];
  if (const size_t bad = find_not_text(row); bad != std::string_view::npos)
    not_text(path, fmt::format(" of row {}", chunk.line + static_cast<int64_t>(i)), static_cast<int64_t>(bad),
             static_cast<uint8_t>(row[bad]));
  return row;
}

}  // namespace

DocumentReader::DocumentReader(const std::vector<InputFile>& files, ReadRules rules)
    : files_(files), rules_(std::move(rules)), file_(std::min(rules_.first_file, files.size())) {}

void DocumentReader::open() {
  const InputFile& file = files_[file_];
  lent_ = std::make_unique<LentFile>(file);
  const std::string& path = lent_->path();
  if (file.format == TextFormat::kParquet) {
    records_ = open_parquet(path, rules_.field);
  } else if (file.format == TextFormat::kArrow) {
    records_ = open_arrow(path, rules_.field);
  } else if (file.format == TextFormat::kCsv || file.format == TextFormat::kTsv) {
    records_ = open_csv(path, file.format == TextFormat::kTsv ? '\t' : ',', rules_.field);
  } else if (file.format == TextFormat::kDataSet) {
    if (!rules_.open_data_set)
      fail(ExitCode::kUnusable, "[data] {} is a data set, not text: name text files here", path);
    records_ = rules_.open_data_set(path, rules_.field);
  } else {
    source_ = open_bytes(path);
  }
  raw_.clear();
  pending_.clear();
  raw_offset_ = pending_offset_ = reported_bytes_ = 0;
  counted_bytes_ = counted_characters_ = 0;
  line_ = 1;
  ended_ = false;
  first_ = true;
}

/// Reads a block, checks it and adds it to pending_. JSONL is checked line by line later, where the line can
/// be named.
void DocumentReader::fill() {
  const size_t before = raw_.size();
  raw_.resize(before + kReadBytes);
  const size_t got = source_->read(raw_.data() + before, kReadBytes);
  raw_.resize(before + got);
  ended_ = got == 0;
  if (files_[file_].format == TextFormat::kJsonl) {
    pending_ += raw_;
    raw_.clear();
    return;
  }
  size_t good = std::min(find_not_text(raw_), raw_.size());
  // A character that a block splits waits for the next block, and so does a CR at the end.
  if (good < raw_.size() && (ended_ || raw_.size() - good > 3 || raw_[good] == 0))
    not_text(files_[file_].path, "", raw_offset_ + static_cast<int64_t>(good),
             static_cast<uint8_t>(raw_[good]));
  if (!ended_ && good > 0 && raw_[good - 1] == '\r') --good;
  const std::string_view text(raw_.data(), good);
  rules_.keep_newlines ? void(pending_.append(text)) : append_universal(text, pending_);
  raw_.erase(0, good);
  raw_offset_ += static_cast<int64_t>(good);
}

/// Returns a position at which pending text can be cut; npos when more must be read first. Never its end: a
/// cut shows that more text follows.
size_t DocumentReader::find_cut() {
  if (rules_.cut == CutAt::kWords) {
    const size_t cut = find_safe_cut(pending_, std::max(kWordsBytes, counted_bytes_));
    counted_bytes_ = pending_.empty() ? 0 : pending_.size() - 1;
    return cut;
  }
  constexpr size_t kStep = 4096;
  while (counted_bytes_ < pending_.size()) {
    const auto step = std::string_view(pending_).substr(counted_bytes_, kStep);
    const size_t characters = count_characters(step);
    if (counted_characters_ + characters > kPieceCharacters) break;
    counted_characters_ += characters;
    counted_bytes_ += step.size();
  }
  // Position of the first byte of the character after the piece.
  size_t characters = counted_characters_;
  for (size_t at = counted_bytes_; at < pending_.size(); ++at) {
    if (continues_character(pending_[at])) continue;
    if (characters++ == kPieceCharacters) return at;
  }
  return std::string::npos;
}

TextChunk DocumentReader::cut_off(size_t size) {
  TextChunk chunk{.file = file_, .format = files_[file_].format, .first = first_, .last = false};
  chunk.line = line_;
  chunk.offset = pending_offset_;
  chunk.file_bytes = source_->file_bytes() - reported_bytes_;
  reported_bytes_ = source_->file_bytes();
  if (size == pending_.size()) {
    chunk.text = std::move(pending_);
    pending_.clear();
  } else {
    chunk.text = pending_.substr(0, size);
    pending_.erase(0, size);
  }
  pending_offset_ += static_cast<int64_t>(size);
  counted_bytes_ = counted_characters_ = 0;
  first_ = false;
  return chunk;
}

TextChunk DocumentReader::next_text() {
  size_t cut = find_cut();
  while (cut == std::string::npos && !ended_) {
    fill();
    cut = find_cut();
  }
  const size_t size = std::min(cut, pending_.size());
  const size_t end = end_of_document(size);
  TextChunk chunk = cut_off(std::min(size, end));
  chunk.last = end <= size || cut == std::string::npos;
  if (end <= size) {
    first_ = true;
    rules_.second_document_at.reset();
  }
  return chunk;
}

/// Returns the end of a document that ends before its file does, if it is in the first `size` bytes of
/// pending_; else npos.
size_t DocumentReader::end_of_document(size_t size) const {
  if (!rules_.second_document_at ||
      pending_offset_ + static_cast<int64_t>(size) <= *rules_.second_document_at)
    return std::string::npos;
  auto at = static_cast<size_t>(std::max<int64_t>(0, *rules_.second_document_at - pending_offset_));
  const size_t newline = pending_.find('\n', at);
  if (newline != std::string::npos && newline + 1 < size) return newline + 1;
  while (at < size && continues_character(pending_[at])) ++at;
  return at;
}

std::optional<TextChunk> DocumentReader::next_lines() {
  size_t newline = pending_.rfind('\n');
  while (!ended_ && (pending_.size() < kLinesBytes || newline == std::string::npos)) {
    const size_t before = pending_.size();
    if (newline == std::string::npos && before > kMostLineBytes) {
      fail(ExitCode::kUnusable, "[data] {}:{} is longer than {} MiB: expected one JSON object per line",
           files_[file_].path, line_, kMostLineBytes >> 20);
    }
    fill();
    const size_t found = std::string_view(pending_).substr(before).rfind('\n');
    if (found != std::string::npos) newline = before + found;
  }
  if (ended_ && pending_.empty()) return std::nullopt;
  TextChunk chunk = cut_off(ended_ ? pending_.size() : newline + 1);
  line_ += std::count(chunk.text.begin(), chunk.text.end(), '\n');
  return chunk;
}

std::optional<TextChunk> DocumentReader::next_rows() {
  TextChunk chunk{.file = file_, .format = files_[file_].format};
  chunk.line = line_;
  std::string row;
  for (size_t bytes = 0; bytes < kLinesBytes;) {
    try {
      if (!records_->next(row)) break;
    } catch (const BadRow& bad) {
      row.clear();
      bytes += chunk.bad_rows.emplace(chunk.rows.size(), bad.what()).first->second.size();
    }
    bytes += row.size();
    chunk.rows.push_back(std::exchange(row, {}));
  }
  if (chunk.rows.empty()) return std::nullopt;
  line_ += std::ssize(chunk.rows);
  chunk.file_bytes = records_->file_bytes() - reported_bytes_;
  reported_bytes_ = records_->file_bytes();
  return chunk;
}

std::optional<TextChunk> DocumentReader::next() {
  while (true) {
    if (source_ == nullptr && records_ == nullptr) {
      if (file_ == files_.size()) return std::nullopt;
      open();
    }
    std::optional<TextChunk> chunk;
    if (records_ != nullptr) {
      chunk = next_rows();
    } else if (files_[file_].format == TextFormat::kText) {
      chunk = next_text();
    } else {
      chunk = next_lines();
    }
    // After the first of two documents, first_ is true again.
    if (!chunk || (chunk->format == TextFormat::kText && chunk->last && !first_)) {
      source_.reset();
      records_.reset();
      lent_.reset();
      ++file_;
    }
    if (chunk) return chunk;
  }
}

void for_each_record(const TextChunk& chunk, const InputFile& file, const std::string& field,
                     const std::function<void(std::string_view)>& on_document, const OnBadRow& on_bad_row) {
  /// Errors of `text_of` and BadRows of on_document belong to this row.
  const auto take = [&](auto text_of, auto place) {
    decltype(text_of()) text;
    try {
      text = text_of();
    } catch (const Error& error) {
      if (!on_bad_row) throw;
      return on_bad_row(error.what());
    }
    try {
      on_document(text);
    } catch (const BadRow& bad) {
      const std::string why = fmt::format("[data] {}: {}", place(), bad.what());
      if (!on_bad_row) throw BadRow(why);
      on_bad_row(why);
    }
  };
  for (size_t i = 0; i < chunk.rows.size(); ++i)
    take([&] { return text_of_row(chunk, i, file.path); },
         [&] { return fmt::format("{}, row {}", file.path, chunk.line + static_cast<int64_t>(i)); });
  std::string_view text = chunk.text;
  const char* const begin = text.data();
  for (int64_t number = chunk.line; !text.empty(); ++number) {
    const size_t newline = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto place = [&] { return fmt::format("{}:{}", file.path, number); };
    take(
        [&] {
          if (const size_t bad = find_not_text(line); bad != std::string_view::npos)
            not_text(file.path, fmt::format(", line {}", number),
                     chunk.offset + (line.data() - begin) + static_cast<int64_t>(bad),
                     static_cast<uint8_t>(line[bad]));
          return text_of_json_line(line, field, place());
        },
        place);
  }
}

}  // namespace tycho
