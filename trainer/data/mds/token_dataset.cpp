// One conversion per stored type.
#include "trainer/data/mds/token_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/stored_tokens.h"

namespace tycho {
namespace {

/// As LLM Foundry's sequence ids: how many documents end before a token, or begin up to it.
template <class Id>
void number_documents(const MdsConfig& config, std::span<const Id> tokens, std::span<int32_t> documents) {
  int32_t document = 0;
  for (size_t t = 0; t < tokens.size(); ++t) {
    document += tokens[t] == config.bos_token_id;
    documents[t] = document;
    document += tokens[t] == config.eos_token_id;
  }
}

/// Position of the column with the tokens.
size_t token_column(const MdsReader& reader) {
  const auto has = [&](std::string_view name) {
    const std::vector<MdsShard>& shards = reader.index().shards;
    return !shards.empty() && std::any_of(shards[0].columns.begin(), shards[0].columns.end(),
                                          [&](const MdsColumn& column) { return column.name == name; });
  };
  if (!has("tokens") && has("text"))
    fail(ExitCode::kUnusable,
         "[data] {} has no column \"tokens\", but texts: read it with t.data.text {{ path = ... }}, which "
         "tokenises them at the start, or convert it once with `tycho data convert`",
         reader.index().dir);
  return reader.column("tokens");
}

/// A tokenizer larger than the model's vocabulary is reported before a token of it turns up.
void check_vocabulary(const std::string& dir, int64_t vocab_size) {
  const int64_t tokenizer_size = read_conversion_note(dir).vocab_size;
  if (tokenizer_size > vocab_size) {
    fail(ExitCode::kUnusable,
         "[data] {} was made with a tokenizer of {} tokens, the model's vocabulary has {}; set vocab_size to "
         "{} or more, or convert the data with the model's tokenizer",
         dir, tokenizer_size, vocab_size, tokenizer_size);
  }
}

}  // namespace

TokenDataset::TokenDataset(const MdsConfig& config, int64_t seq_len, int64_t vocab_size,
                           const MakeShardSource& make_source)
    : reader_(read_mds_index(config.dir(), config.decompress_dir),
              make_source ? make_source : local_source(config.verify)),
      column_(token_column(reader_)),
      config_(config),
      seq_len_(seq_len),
      vocab_size_(vocab_size) {
  const std::string dir = config.dir();
  encoding_ = reader_.index().shards[0].columns[column_].encoding;
  if (encoding_ != "bytes" && !encoding_.starts_with("ndarray"))
    fail(ExitCode::kUnusable, "[data] column \"tokens\" of {} has the encoding {}, wanted ndarray:int32", dir,
         encoding_);
  check_vocabulary(dir, vocab_size);
  std::vector<int32_t> first(static_cast<size_t>(seq_len));
  read(0, std::span(first));
}

void TokenDataset::refuse_narrow_bytes(int64_t sample, std::string_view value) const {
  const auto all_inside = [&]<class Stored>(Stored) {
    const size_t count = value.size() / sizeof(Stored);
    for (size_t i = 0; i < count; ++i)
      if (const auto id = static_cast<int64_t>(stored_at<Stored>(value.data(), i));
          id < 0 || id >= vocab_size_)
        return false;
    return count > 0 && value.size() % sizeof(Stored) == 0;
  };
  if (encoding_ != "bytes" || all_inside(int64_t{})) return;
  const char* narrow = all_inside(int32_t{}) ? "int32" : all_inside(uint16_t{}) ? "uint16" : nullptr;
  if (narrow == nullptr) return;
  fail(ExitCode::kUnusable,
       "[data] {}: expected int64 tokens in a column of bytes, got what looks like {}: write the data with "
       "the "
       "encoding ndarray:{} (the column says only \"bytes\"), or as int64",
       reader_.name_of(sample), narrow, narrow);
}

template <class Stored, class Id>
void TokenDataset::take_tokens(int64_t sample, const MdsArrayView& array, std::span<Id> tokens) const {
  const char* elements = array.elements;
  if (copy_tokens<Stored>(elements, vocab_size_, tokens)) return;
  refuse_narrow_bytes(sample, {elements, static_cast<size_t>(array.count) * sizeof(Stored)});
  const size_t at = first_outside<Stored>(elements, vocab_size_);
  fail(ExitCode::kUnusable,
       "[data] token {} at position {} of {} is outside the model's vocabulary of {}; was the data made "
       "with a different tokenizer?",
       stored_at<Stored>(elements, at), at, reader_.name_of(sample), vocab_size_);
}

template <class Id>
void TokenDataset::read(int64_t sample, std::span<Id> tokens) {
  const std::string_view value = reader_.read(sample)[column_];
  MdsArrayView array{"int64", value.data(), static_cast<int64_t>(value.size() / sizeof(int64_t))};
  if (encoding_ != "bytes") array = decode_mds_array(encoding_, value, "[data] " + reader_.name_of(sample));
  if (array.count < seq_len_) {
    refuse_narrow_bytes(sample, value);
    fail(ExitCode::kUnusable,
         "[data] {} has {} tokens, the recipe's sequence length is {}; set seq_len = {}, or convert the data "
         "again with --concat-tokens {}",
         reader_.name_of(sample), array.count, seq_len_, array.count, seq_len_);
  }
  if (array.dtype == "int32") return take_tokens<int32_t, Id>(sample, array, tokens);
  if (array.dtype == "uint16") return take_tokens<uint16_t, Id>(sample, array, tokens);
  if (array.dtype == "uint32") return take_tokens<uint32_t, Id>(sample, array, tokens);
  if (array.dtype == "int64") return take_tokens<int64_t, Id>(sample, array, tokens);
  fail(ExitCode::kUnusable, "[data] {} holds {} values; tokens must be int32, int64, uint16 or uint32",
       reader_.name_of(sample), array.dtype);
}

template <class Id>
void TokenDataset::fill(std::span<const uint32_t> samples, std::vector<Id>& tokens, std::vector<Id>& targets,
                        Batch& batch) {
  const auto row_size = static_cast<size_t>(seq_len_);
  for (size_t b = 0; b < samples.size(); ++b) {
    const auto row = std::span(tokens).subspan(b * row_size, row_size);
    read(samples[b], row);
    std::copy(row.begin() + 1, row.end(), targets.begin() + static_cast<int64_t>(b * row_size));
  }
  if (config_.separates_documents()) {
    batch.documents.resize(tokens.size());
    for (size_t begin = 0; begin < tokens.size(); begin += row_size)
      number_documents<Id>(config_, std::span(tokens).subspan(begin, row_size),
                           std::span(batch.documents).subspan(begin, row_size));
  }
  batch.valid_tokens = static_cast<int64_t>(samples.size()) * (seq_len_ - 1);
  if (config_.pad_token_id) {
    const auto pad = static_cast<Id>(*config_.pad_token_id);
    batch.valid_tokens -= std::count(targets.begin(), targets.end(), pad);
    std::replace(targets.begin(), targets.end(), pad, static_cast<Id>(kNoTarget));
  }
}

Batch TokenDataset::read_batch(std::span<const uint32_t> samples, int64_t num_sequences) {
  TYCHO_CHECK(std::cmp_less_equal(samples.size(), num_sequences),
              "[data] {} samples do not fit into a batch of {}", samples.size(), num_sequences);
  Batch batch = empty_batch(num_sequences, seq_len_, vocab_size_);
  batch.tokens.visit(
      [&]<class Id>(std::vector<Id>& tokens) { fill(samples, tokens, batch.targets.as<Id>(), batch); });
  return batch;
}

}  // namespace tycho
