// Threads read and tokenise chunks in turn, so that the next result is always in progress.
#include "trainer/data/tokenizer/chunk_tokenizer.h"

#include <utility>

#include "trainer/base/error.h"

namespace tycho {

namespace {
constexpr size_t kChunksPerThread = 4;

void append(std::vector<int32_t>& tokens, const std::vector<int32_t>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}
}  // namespace

ChunkTokenizer::ChunkTokenizer(const Tokenizer& tokenizer, DocumentReader& reader, bool adds_tokens,
                               BadRows bad_rows, int threads)
    : tokenizer_(tokenizer),
      reader_(reader),
      bad_rows_(bad_rows),
      window_(kChunksPerThread * static_cast<size_t>(threads)) {
  if (adds_tokens) {
    begin_ = tokenizer.text_begin();
    end_ = tokenizer.text_end();
  }
  for (int i = 0; i < threads; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

std::optional<ChunkTokens> ChunkTokenizer::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return results_.contains(next_result_) || (ended_ && next_result_ == next_chunk_); });
  if (!results_.contains(next_result_)) return std::nullopt;
  Result result = std::move(results_.extract(next_result_++).mapped());
  changed_.notify_all();
  if (result.error) std::rethrow_exception(result.error);
  return std::move(result.tokens);
}

/// Reads the next chunk and sets `number` to its number. Returns nothing after the last chunk, or when the
/// threads must stop.
std::optional<TextChunk> ChunkTokenizer::take(const std::stop_token& stop, size_t& number) {
  const std::lock_guard reading(reading_);
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return ended_ || next_chunk_ < next_result_ + window_; }) || ended_)
      return std::nullopt;
  }
  std::optional<TextChunk> chunk;
  Result failed;
  try {
    chunk = reader_.next();
  } catch (...) {
    failed.error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  number = next_chunk_;
  if (chunk || failed.error) ++next_chunk_;
  if (failed.error) results_.emplace(number, std::move(failed));
  ended_ = !chunk;
  changed_.notify_all();
  return chunk;
}

void ChunkTokenizer::put(size_t number, Result result) {
  const std::lock_guard lock(mutex_);
  results_.emplace(number, std::move(result));
  changed_.notify_all();
}

void ChunkTokenizer::work(const std::stop_token& stop) {
  size_t number = 0;
  for (auto chunk = take(stop, number); chunk; chunk = take(stop, number)) {
    Result result;
    try {
      result.tokens = encode(*chunk);
    } catch (...) {
      result.error = std::current_exception();
    }
    put(number, std::move(result));
  }
}

ChunkTokens ChunkTokenizer::encode(const TextChunk& chunk) const {
  ChunkTokens out{.file = chunk.file,
                  .format = chunk.format,
                  .first = chunk.first,
                  .last = chunk.last,
                  .file_bytes = chunk.file_bytes};
  const auto add = [&](std::string_view text, bool first, bool last) {
    out.text_bytes += static_cast<int64_t>(text.size());
    if (first) append(out.tokens, begin_);
    if (out.tokens.empty()) {
      out.tokens = tokenizer_.encode(text);
    } else {
      append(out.tokens, tokenizer_.encode(text));
    }
    if (last) append(out.tokens, end_);
  };
  if (chunk.format == TextFormat::kText) {
    // LLM Foundry encodes nothing for a file without text, not even the tokenizer's own tokens.
    try {
      if (!chunk.text.empty()) add(chunk.text, chunk.first, chunk.last);
    } catch (const BadRow& bad) {
      throw BadRow(fmt::format("[data] {}: {}", reader_.file(chunk).path, bad.what()));
    }
    return out;
  }
  int64_t skipped_before = 0;
  OnBadRow on_bad_row;
  if (bad_rows_ == BadRows::kSkip) on_bad_row = [&](const std::string& why) { out.skipped.add(why); };
  const auto on_document = [&](std::string_view text) {
    const size_t before = out.tokens.size();
    try {
      add(text, true, true);
    } catch (const BadRow&) {
      out.tokens.resize(before);
      out.text_bytes -= static_cast<int64_t>(text.size());
      throw;
    }
    out.documents.push_back({out.tokens.size(), static_cast<int64_t>(text.size()),
                             out.skipped.count - std::exchange(skipped_before, out.skipped.count)});
  };
  for_each_record(chunk, reader_.file(chunk), reader_.rules().field, on_document, on_bad_row);
  return out;
}

}  // namespace tycho
