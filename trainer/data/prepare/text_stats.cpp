// Two passes if there is a tokenizer; the second one counts the tokens.
#include "trainer/data/prepare/text_stats.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/hash.h"
#include "trainer/data/mds/data_set_records.h"
#include "trainer/data/sources/document_reader.h"
#include "trainer/data/tokenizer/chunk_tokenizer.h"

namespace tycho {
namespace {

/// Counts documents as they end; a text file is added in pieces.
class TextCounter {
 public:
  explicit TextCounter(TextStats& stats) : stats_(stats) {}

  void add(std::string_view text) {
    hasher_->update(text.data(), text.size());
    bytes_ += static_cast<int64_t>(text.size());
  }
  void end_document() {
    duplicates_.add(std::stoull(hasher_->hex().substr(0, 16), nullptr, 16));
    hasher_.emplace();
    ++stats_.documents;
    stats_.empty_documents += bytes_ == 0;
    stats_.document_bytes.add(std::exchange(bytes_, 0));
  }
  void finish() {
    stats_.duplicate_share = duplicates_.share();
    stats_.duplicates_of_one_in = duplicates_.looks_at_one_in();
  }

 private:
  TextStats& stats_;
  DuplicateCounter duplicates_;
  std::optional<Hasher> hasher_{std::in_place};  // hash of the current document
  int64_t bytes_ = 0;
};

}  // namespace

void DuplicateCounter::add(uint64_t hash) {
  const auto is_kept = [&](uint64_t one) { return (one & ((uint64_t{1} << skipped_bits_) - 1)) == 0; };
  if (!is_kept(hash)) return;
  ++occurrences_[hash];
  while (occurrences_.size() > most_kept_) {
    ++skipped_bits_;
    std::erase_if(occurrences_, [&](const auto& one) { return !is_kept(one.first); });
  }
}

double DuplicateCounter::share() const {
  int64_t seen = 0;
  for (const auto& [hash, count] : occurrences_) seen += count;
  return seen == 0 ? 0 : static_cast<double>(seen - std::ssize(occurrences_)) / static_cast<double>(seen);
}

TextStats text_stats(const InputFiles& inputs, const InputRules& rules, const Tokenizer* tokenizer,
                     int threads) {
  TextStats stats;
  stats.files = std::ssize(inputs.files);
  ReadRules reading{.field = rules.field, .open_data_set = open_data_set_texts};
  TextCounter counter(stats);
  DocumentReader reader(inputs.files, reading);
  OnBadRow on_bad_row;
  if (rules.bad_rows == BadRows::kSkip) on_bad_row = [&](const std::string& why) { stats.skipped.add(why); };
  while (const auto chunk = reader.next()) {
    if (chunk->format == TextFormat::kText) {
      counter.add(chunk->text);
      if (chunk->last) counter.end_document();
      continue;
    }
    const auto on_document = [&](std::string_view text) {
      counter.add(text);
      counter.end_document();
    };
    for_each_record(*chunk, reader.file(*chunk), rules.field, on_document, on_bad_row);
  }
  counter.finish();
  if (tokenizer == nullptr) return stats;
  DocumentReader again(inputs.files, reading);
  ChunkTokenizer chunks(*tokenizer, again, /*adds_tokens=*/false, rules.bad_rows, threads);
  while (const auto chunk = chunks.next()) stats.tokens += std::ssize(chunk->tokens);
  return stats;
}

}  // namespace tycho
