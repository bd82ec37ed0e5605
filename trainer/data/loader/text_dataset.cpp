// Tokens and targets of all documents, each in one vector; a row is a window of both.
#include "trainer/data/loader/text_dataset.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/mds/cached_file.h"
#include "trainer/data/mds/data_set_records.h"
#include "trainer/data/tokenizer/chunk_tokenizer.h"
#include "trainer/data/tokenizer/local_tokenizer.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/data/tokenizer/tokenizer_of_rows.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

/// Returns the token to add: `chosen`, else the token `name`. Returns nothing if the tokenizer's own encoding
/// adds tokens (`own`), or if there is no such token.
std::optional<int32_t> added_token(const Tokenizer& tokenizer, const std::vector<int32_t>& own,
                                   std::optional<int64_t> chosen, const std::string& name) {
  if (!own.empty()) return std::nullopt;
  if (chosen) return static_cast<int32_t>(*chosen);
  const int32_t id = name.empty() ? -1 : tokenizer.find(name);
  return id >= 0 ? std::optional(id) : std::nullopt;
}

/// Returns a text that is equal for two data sets that would read the same rows.
std::string identity(const TextConfig& config, const RowShape& shape) {
  std::string key = fmt::format("text|{}|{}|{}|{}|{}|{}|{}|{}|{}", config.path, config.split, config.field,
                                static_cast<int>(config.bad_rows), config.bos_token_id.value_or(-1),
                                config.eos_token_id.value_or(-1), config.separate_documents, shape.seq_len,
                                shape.vocab_size);
  key += "|" + version_of(local_tokenizer(shape.tokenizer));
  for (const InputFile& file : input_files(config).files) key += "|" + version_of(file);
  return key;
}

}  // namespace

std::vector<std::string> fetch_texts(const TextConfig& config) {
  if (config.remote.empty()) return {config.path};
  if (config.remote_files.empty()) {
    const RemoteUri place = parse_remote(config.remote);
    std::error_code error;
    if (place.kind == RemoteUri::Kind::kFolder && std::filesystem::is_directory(place.folder, error))
      fail(ExitCode::kUnusable,
           "[data] remote {} is a folder: name the files to fetch in remote_files, or, without remote, the "
           "folder itself in path",
           config.remote);
    fetch_file(config.remote, config.path, {config.remote_hash});
    return {config.path};
  }
  std::vector<std::string> paths;
  for (size_t i = 0; i < config.remote_files.size(); ++i) {
    const std::string& name = config.remote_files[i];
    FileChecksum checksum;
    if (!config.remote_hashes.empty())
      checksum = {config.remote_hashes[i], fmt::format("remote_hashes[{}]", i + 1)};
    paths.push_back(config.path + "/" + name);
    fetch_file(parse_remote(config.remote).text + "/" + name, paths.back(), checksum);
  }
  return paths;
}

InputFiles input_files(const TextConfig& config) {
  return find_input_files(fetch_texts(config), {.field = config.field, .split = config.split});
}

TextDataset::TextDataset(const TextConfig& config, const RowShape& shape)
    : seq_len_(shape.seq_len),
      vocab_size_(shape.vocab_size),
      separates_documents_(config.separate_documents) {
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of_rows(shape, config.path);
  begin_ = added_token(*tokenizer, tokenizer->text_begin(), config.bos_token_id, tokenizer->info().bos);
  end_ = added_token(*tokenizer, tokenizer->text_end(), config.eos_token_id, find_eos_token(*tokenizer));
  if (!begin_ && !end_ && tokenizer->text_begin().empty() && tokenizer->text_end().empty())
    fail(ExitCode::kUnusable,
         "[data] nothing would separate the documents of {}: {} names no token that begins or ends a text; "
         "set "
         "eos_token_id",
         config.path, shape.tokenizer);
  const SkippedRows skipped = read(config, *tokenizer);
  if (skipped.count > 0) warnings_.push_back(fmt::format("of {}, {}", config.path, skipped.text()));
  if (num_rows() == 0)
    fail(ExitCode::kUnusable,
         "[data] {} has {} tokens, fewer than a row of {}; use more text or a smaller seq_len{}", config.path,
         tokens_.size(), seq_len_, skipped.count > 0 ? ". " + skipped.text() : "");
  if (num_rows() >= int64_t{1} << 32)
    fail(ExitCode::kUnusable, "[data] {} has more than 2^32-1 rows; convert it: tycho data convert",
         config.path);
}

SkippedRows TextDataset::read(const TextConfig& config, const Tokenizer& tokenizer) {
  InputFiles inputs = input_files(config);
  notes_ = std::move(inputs.notes);
  DocumentReader reader(inputs.files,
                        {.field = config.field,
                         .cut = tokenizer.splits_at_words() ? CutAt::kWords : CutAt::kMillionCharacters,
                         .open_data_set = open_data_set_texts});
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  ChunkTokenizer chunks(tokenizer, reader, true, config.bad_rows, threads);
  const auto add = [&](std::span<const int32_t> tokens, bool first, bool last) {
    if (first && begin_) add_token(*begin_);
    for (const int32_t token : tokens) add_token(token);
    if (last && end_) add_token(*end_);
    if (last) end_document();
  };
  SkippedRows skipped;
  while (const auto chunk = chunks.next()) {
    const std::span<const int32_t> tokens(chunk->tokens);
    skipped.add(chunk->skipped);
    if (chunk->format == TextFormat::kText) {
      add(tokens, chunk->first, chunk->last);
      continue;
    }
    size_t from = 0;
    for (const ChunkTokens::Document& document : chunk->documents) {
      add(tokens.subspan(from, document.end - from), true, true);
      from = document.end;
    }
  }
  return skipped;
}

void TextDataset::add_token(int32_t token) {
  if (last_) {
    tokens_.push_back(*last_);
    targets_.push_back(token);
  }
  last_ = token;
}

void TextDataset::end_document() {
  last_.reset();
  if (separates_documents_) document_ends_.push_back(std::ssize(tokens_));
}

Batch TextDataset::read_batch(std::span<const uint32_t> rows, int64_t num_sequences) const {
  const auto size = static_cast<size_t>(seq_len_);
  Batch batch = empty_batch(num_sequences, seq_len_, vocab_size_);
  if (separates_documents_) batch.documents.resize(batch.tokens.size());
  for (size_t b = 0; b < rows.size(); ++b) {
    const int64_t begin = static_cast<int64_t>(rows[b]) * seq_len_;
    const size_t at = b * size;
    batch.tokens.put(at, std::span(tokens_).subspan(static_cast<size_t>(begin), size));
    batch.targets.put(at, std::span(targets_).subspan(static_cast<size_t>(begin), size));
    if (!separates_documents_) continue;
    auto end = std::upper_bound(document_ends_.begin(), document_ends_.end(), begin);
    int32_t document = 0;
    for (size_t t = 0; t < size; ++t) {
      for (; end != document_ends_.end() && *end <= begin + static_cast<int64_t>(t); ++end) ++document;
      batch.documents[at + t] = document;
    }
  }
  batch.valid_tokens = static_cast<int64_t>(rows.size()) * seq_len_;
  return batch;
}

std::shared_ptr<const TextDataset> open_text_dataset(const TextConfig& config, const RowShape& shape,
                                                     const OpenedData& opened) {
  return opened.open<TextDataset>(identity(config, shape),
                                  [&] { return std::make_shared<const TextDataset>(config, shape); });
}

}  // namespace tycho
