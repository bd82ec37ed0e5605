// One conversion per stored type.
#include "trainer/data/mds/token_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/weight_column.h"
#include "trainer/data/rows/stored_tokens.h"

namespace tycho {
namespace {

/// Numbers documents like LLM Foundry's sequence ids: the number of documents that end before a token, or
/// begin up to it.
template <class Id>
void number_documents(const MdsConfig& config, std::span<const Id> tokens, std::span<int32_t> documents) {
  int32_t document = 0;
  for (size_t t = 0; t < tokens.size(); ++t) {
    document += tokens[t] == config.bos_token_id;
    documents[t] = document;
    document += tokens[t] == config.eos_token_id;
  }
}

/// Returns the position of the column with the tokens.
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

/// Throws Error if the data's tokenizer is larger than the model's vocabulary, before such a token is read.
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

TokenDataset::TokenDataset(const MdsConfig& config, const RowShape& shape, const MakeShardSource& make_source,
                           std::shared_ptr<const MdsIndex> index)
    : reader_(index ? std::move(index)
                    : std::make_shared<const MdsIndex>(read_mds_index(config.dir(), config.decompress_dir)),
              make_source ? make_source : local_source(config.verify)),
      column_(token_column(reader_)),
      config_(config),
      shape_(shape),
      num_rows_(reader_.index().num_samples()) {
  if (!config.weights.empty()) weight_column_ = reader_.column(config.weights);
  const std::string dir = config.dir();
  encoding_ = reader_.index().shards[0].columns[column_].encoding;
  if (encoding_ != "bytes" && !encoding_.starts_with("ndarray"))
    fail(ExitCode::kUnusable, "[data] column \"tokens\" of {} has the encoding {}, expected ndarray:int32",
         dir, encoding_);
  check_vocabulary(dir, shape.vocab_size);
  if (config.recut) {
    const MdsArrayView first = array_of(0);
    refuse_narrow_bytes(0, {first.elements, static_cast<size_t>(first.count) * sizeof(int64_t)});
    recut_ = {.sample_tokens = first.count, .row_tokens = shape.seq_len};
    num_rows_ = recut_->num_rows(num_rows_);
    if (num_rows_ == 0 || num_rows_ >= int64_t{1} << 32)
      fail(ExitCode::kUnusable,
           "[data] {} expected from 1 to 2^32-1 rows of seq_len = {} tokens, got {} out of {} samples of {} "
           "tokens; choose another seq_len",
           dir, shape.seq_len, num_rows_, reader_.index().num_samples(), recut_->sample_tokens);
  }
  std::vector<int32_t> first(static_cast<size_t>(shape.seq_len));
  std::vector<float> weights(config.weights.empty() ? 0 : first.size());
  read_row(0, std::span(first), std::span(weights));
}

std::vector<std::vector<uint32_t>> TokenDataset::shard_sizes() const {
  const std::vector<uint32_t> samples = tycho::shard_sizes(reader_.index());
  return {recut_ ? recut_->shard_rows(samples) : samples};
}

void TokenDataset::refuse_narrow_bytes(int64_t sample, std::string_view value) const {
  const auto all_inside = [&]<class Stored>(Stored) {
    const size_t count = value.size() / sizeof(Stored);
    for (size_t i = 0; i < count; ++i)
      if (const auto id = static_cast<int64_t>(stored_at<Stored>(value.data(), i));
          id < 0 || id >= shape_.vocab_size)
        return false;
    return count > 0 && value.size() % sizeof(Stored) == 0;
  };
  if (encoding_ != "bytes" || all_inside(int64_t{})) return;
  const char* narrow = all_inside(int32_t{}) ? "int32" : all_inside(uint16_t{}) ? "uint16" : nullptr;
  if (narrow == nullptr) return;
  fail(ExitCode::kUnusable,
       "[data] {}: expected int64 tokens in a column of bytes, got what looks like {}: write the data with "
       "the encoding ndarray:{} (the column says only \"bytes\"), or as int64",
       reader_.name_of(sample), narrow, narrow);
}

template <class Stored, class Id>
void TokenDataset::take_tokens(int64_t sample, const MdsArrayView& array, int64_t first,
                               std::span<Id> tokens) const {
  const char* const elements = array.elements + first * static_cast<int64_t>(sizeof(Stored));
  if (copy_tokens<Stored>(elements, shape_.vocab_size, tokens)) return;
  refuse_narrow_bytes(sample, {array.elements, static_cast<size_t>(array.count) * sizeof(Stored)});
  const size_t at = first_outside<Stored>(elements, shape_.vocab_size);
  fail(ExitCode::kUnusable,
       "[data] token {} at position {} of {} is outside the model's vocabulary of {}; was the data made "
       "with a different tokenizer?",
       stored_at<Stored>(elements, at), first + static_cast<int64_t>(at), reader_.name_of(sample),
       shape_.vocab_size);
}

/// Returns the tokens of a sample. Valid until the next call.
MdsArrayView TokenDataset::array_of(int64_t sample) {
  const std::string_view value = reader_.read(sample)[column_];
  if (encoding_ != "bytes") return decode_mds_array(encoding_, value, "[data] " + reader_.name_of(sample));
  return {"int64", value.data(), static_cast<int64_t>(value.size() / sizeof(int64_t))};
}

void TokenDataset::check_length(int64_t sample, const MdsArrayView& array) const {
  const int64_t seq_len = shape_.seq_len, tokens = array.count;
  if (tokens == (recut_ ? recut_->sample_tokens : seq_len)) return;
  if (config_.truncate && !recut_ && tokens > seq_len) return;
  refuse_narrow_bytes(sample, {array.elements, static_cast<size_t>(tokens) * sizeof(int64_t)});
  if (recut_)
    fail(ExitCode::kUnusable,
         "[data] {} has {} tokens, expected {} as in the first sample: {}.recut = true needs samples of one "
         "length; leave it out, or convert the data again with --concat-tokens {}",
         reader_.name_of(sample), tokens, recut_->sample_tokens, shape_.key, seq_len);
  if (tokens < seq_len)
    fail(ExitCode::kUnusable,
         "[data] {} has {} tokens, the recipe's sequence length is {}; set seq_len = {}, or {}.recut = true "
         "(rows of {} tokens across samples), or convert the data again with --concat-tokens {}",
         reader_.name_of(sample), tokens, seq_len, tokens, shape_.key, seq_len, seq_len);
  fail(ExitCode::kUnusable,
       "[data] {} has {} tokens, the recipe's sequence length is {}; set {}.recut = true (the same tokens "
       "as rows of {}), {}.truncate = true (the first {} of every sample, as LLM Foundry does; the others "
       "are never read), or seq_len = {}",
       reader_.name_of(sample), tokens, seq_len, shape_.key, seq_len, shape_.key, seq_len, tokens);
}

void TokenDataset::weigh(int64_t sample, int64_t first, std::span<float> weights) {
  const MdsArrayView tokens = array_of(sample);
  check_length(sample, tokens);
  const int64_t num_tokens = tokens.count;
  const std::string place = fmt::format("column \"{}\" of {}", config_.weights, reader_.name_of(sample));
  read_weights(reader_.index().shards[0].columns[weight_column_].encoding,
               reader_.read(sample)[weight_column_], num_tokens, first, weights, shape_.marks, place);
}

template <class Id>
void TokenDataset::read_row(int64_t row, std::span<Id> tokens, std::span<float> weights) {
  if (!recut_) return read(row, 0, tokens, weights);
  int64_t sample = recut_->first_sample(row), first = recut_->first_token(row);
  for (; !tokens.empty(); ++sample, first = 0) {
    const auto size = std::min(tokens.size(), static_cast<size_t>(recut_->sample_tokens - first));
    const size_t weighed = weights.empty() ? 0 : size;
    read(sample, first, tokens.first(size), weights.first(weighed));
    tokens = tokens.subspan(size), weights = weights.subspan(weighed);
  }
}

template <class Id>
void TokenDataset::read(int64_t sample, int64_t first, std::span<Id> tokens, std::span<float> weights) {
  if (!weights.empty()) weigh(sample, first, weights);  // first: the array is valid until the next read
  const MdsArrayView array = array_of(sample);
  check_length(sample, array);
  if (array.dtype == "int32") return take_tokens<int32_t, Id>(sample, array, first, tokens);
  if (array.dtype == "uint16") return take_tokens<uint16_t, Id>(sample, array, first, tokens);
  if (array.dtype == "uint32") return take_tokens<uint32_t, Id>(sample, array, first, tokens);
  if (array.dtype == "int64") return take_tokens<int64_t, Id>(sample, array, first, tokens);
  fail(ExitCode::kUnusable, "[data] {} holds {} values; tokens must be int32, int64, uint16 or uint32",
       reader_.name_of(sample), array.dtype);
}

template <class Id>
void TokenDataset::fill(std::span<const uint32_t> samples, std::vector<Id>& tokens, std::vector<Id>& targets,
                        Batch& batch) {
  const auto row_size = static_cast<size_t>(shape_.seq_len);
  std::vector<float> weights(config_.weights.empty() ? 0 : row_size);
  if (!weights.empty()) batch.weights.assign(tokens.size(), 0.0f);
  for (size_t b = 0; b < samples.size(); ++b) {
    const auto row = std::span(tokens).subspan(b * row_size, row_size);
    read_row(samples[b], row, std::span(weights));
    const auto at = static_cast<int64_t>(b * row_size);
    std::copy(row.begin() + 1, row.end(), targets.begin() + at);
    if (!weights.empty()) std::copy(weights.begin() + 1, weights.end(), batch.weights.begin() + at);
  }
  if (config_.separates_documents()) {
    batch.documents.resize(tokens.size());
    for (size_t begin = 0; begin < tokens.size(); begin += row_size)
      number_documents<Id>(config_, std::span(tokens).subspan(begin, row_size),
                           std::span(batch.documents).subspan(begin, row_size));
  }
  batch.valid_tokens = static_cast<int64_t>(samples.size()) * (shape_.seq_len - 1);
  if (config_.pad_token_id) {
    const auto pad = static_cast<Id>(*config_.pad_token_id);
    batch.valid_tokens -= std::count(targets.begin(), targets.end(), pad);
    for (size_t i = 0; i < batch.weights.size(); ++i)
      if (targets[i] == pad) batch.weights[i] = 0;
    std::replace(targets.begin(), targets.end(), pad, static_cast<Id>(kNoTarget));
  }
}

Batch TokenDataset::read_batch(std::span<const uint32_t> samples, int64_t num_sequences) {
  TYCHO_CHECK(std::cmp_less_equal(samples.size(), num_sequences),
              "[data] {} samples do not fit into a batch of {}", samples.size(), num_sequences);
  Batch batch = empty_batch(num_sequences, shape_.seq_len, shape_.vocab_size);
  batch.tokens.visit(
      [&]<class Id>(std::vector<Id>& tokens) { fill(samples, tokens, batch.targets.as<Id>(), batch); });
  return batch;
}

}  // namespace tycho
