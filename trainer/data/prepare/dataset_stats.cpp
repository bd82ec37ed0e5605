// One pass over the samples in order, so that documents that continue in the next sample are counted whole.
#include "trainer/data/prepare/dataset_stats.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_tokens.h"

namespace tycho {
namespace {

/// Counts the occurrences of each token.
class TokenCounter {
 public:
  explicit TokenCounter(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  void add(int32_t id) {
    if (id < kUsual)
      ++counts_[static_cast<size_t>(id)];
    else
      ++others_[id];
  }

  void add_to(DatasetStats& stats) const {
    for (int32_t id = 0; id < kUsual; ++id) add_token(id, counts_[static_cast<size_t>(id)], stats);
    for (const auto& [id, count] : others_) add_token(id, count, stats);
  }

 private:
  static constexpr int32_t kUsual = 1 << 20;

  void add_token(int32_t id, int64_t count, DatasetStats& stats) const {
    if (count == 0) return;
    ++stats.distinct_tokens;
    if (tokenizer_ == nullptr || id >= tokenizer_->size() || tokenizer_->is_special(id)) return;
    stats.text_tokens += count;
    stats.text_bytes += count * std::ssize(tokenizer_->token_bytes(id));
  }

  const Tokenizer* tokenizer_;
  std::vector<int64_t> counts_ = std::vector<int64_t>(kUsual);
  std::unordered_map<int32_t, int64_t> others_;  // ids that a damaged data set may have
};

/// Measures the lengths of documents, given their tokens one after the other.
class DocumentLengths {
 public:
  DocumentLengths(const Separators& separators, LengthCounts& lengths)
      : separators_(separators), lengths_(lengths) {}

  void add(int32_t token) {
    if (token == separators_.begins_with) end();
    ++length_;
    if (token == separators_.ends_with) end();
  }
  void end() {
    if (length_ > 0) lengths_.add(length_);
    length_ = 0;
  }

 private:
  Separators separators_;
  LengthCounts& lengths_;
  int64_t length_ = 0;
};

std::optional<int32_t> only_token(const std::string& text, const Tokenizer& tokenizer) {
  if (text.empty()) return std::nullopt;
  const std::vector<int32_t> ids = tokenizer.encode(text);
  return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
}

std::optional<int32_t> only_token(const std::vector<int32_t>& ids) {
  return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
}

}  // namespace

int64_t LengthCounts::number() const {
  int64_t sum = 0;
  for (const auto& [length, count] : counts) sum += count;
  return sum;
}

int64_t LengthCounts::total() const {
  int64_t sum = 0;
  for (const auto& [length, count] : counts) sum += length * count;
  return sum;
}

int64_t LengthCounts::quantile(double share) const {
  const auto wanted = static_cast<int64_t>(std::ceil(share * static_cast<double>(number())));
  int64_t seen = 0;
  for (const auto& [length, count] : counts)
    if ((seen += count) >= wanted) return length;
  return 0;
}

Separators separators_of(const std::string& dir, const Tokenizer& tokenizer) {
  const ConversionNote note = read_conversion_note(dir);
  Separators found;
  found.ends_with = only_token(note.eos_text, tokenizer);
  if (!found.ends_with) found.ends_with = only_token(note.text_end);
  if (found.ends_with) return found;
  found.begins_with = only_token(note.bos_text, tokenizer);
  if (!found.begins_with) found.begins_with = only_token(note.text_begin);
  return found;
}

DatasetStats dataset_stats(const std::string& dir, const Tokenizer* tokenizer, const Separators& separators) {
  TYCHO_CHECK(!separators.ends_with || !separators.begins_with, "[data] documents end or begin with a token");
  MdsReader reader(read_mds_index(dir), VerifyShards::kOnce, RawShards::kInMemory);
  const size_t column = reader.column("tokens");
  const bool goes_on = !read_conversion_note(dir).no_wrap;
  const bool has_documents = separators.ends_with || separators.begins_with;
  DatasetStats stats{.samples = reader.index().num_samples()};
  stats.ends_with = separators.ends_with;
  stats.begins_with = separators.begins_with;
  TokenCounter counter(tokenizer);
  DocumentLengths documents(separators, stats.document_tokens);
  for (int64_t sample = 0; sample < stats.samples; ++sample) {
    const std::string_view value = reader.read(sample)[column];
    const std::vector<int32_t> tokens = mds_tokens(reader.index().shards[0].columns[column].encoding, value,
                                                   "[data] " + reader.name_of(sample));
    stats.tokens += std::ssize(tokens);
    stats.sample_tokens.add(std::ssize(tokens));
    for (const int32_t token : tokens) counter.add(token);
    if (!has_documents) continue;
    for (const int32_t token : tokens) documents.add(token);
    if (!goes_on) documents.end();
  }
  documents.end();
  counter.add_to(stats);
  return stats;
}

}  // namespace tycho
