// Worker threads tokenise; the caller's thread packs and writes.
#include "trainer/data/prepare/convert.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/data_set_records.h"
#include "trainer/data/prepare/conversion_state.h"
#include "trainer/data/prepare/leftovers.h"
#include "trainer/data/prepare/publication.h"
#include "trainer/data/prepare/split_writer.h"
#include "trainer/data/prepare/token_packer.h"
#include "trainer/data/tokenizer/chunk_tokenizer.h"
#include "trainer/data/tokenizer/special_tokens.h"

namespace tycho {
namespace {

constexpr auto kProgressEvery = std::chrono::milliseconds(100);
const std::vector<MdsColumn> kColumns = {{"tokens", "ndarray:int32"}};

/// One split while it is written: its packer, shards and counts.
class SplitInProgress {
 public:
  SplitInProgress(FileOps& files, const SplitRules& rules, const std::string& split,
                  TokenPacker::Rules packing)
      : writer_(files, rules, split, kColumns),
        split_({.dir = writer_.dir()}),
        packer_(std::move(packing), [this](std::span<const int32_t> sample) { write(sample); }) {}

  /// Continues from the work folder and state of a conversion that was killed.
  SplitInProgress(FileOps& files, const SplitRules& rules, const std::string& split,
                  TokenPacker::Rules packing, SplitState state)
      : writer_(files, rules, split, kColumns, std::move(state.writer)),
        split_({.dir = writer_.dir(),
                .documents = state.documents,
                .bytes = state.bytes,
                .longest_bytes = state.longest_bytes,
                .skipped_rows = state.skipped_rows}),
        part_bytes_(state.part_bytes),
        packer_(std::move(packing), [this](std::span<const int32_t> sample) { write(sample); }) {
    packer_.restore(std::move(state.packer));
  }

  SplitState state() const {
    return {split_.documents, split_.bytes,    split_.longest_bytes, split_.skipped_rows,
            part_bytes_,      packer_.state(), writer_.state()};
  }

  /// Adds a part of one document.
  void add_part(const ChunkTokens& part) {
    packer_.add_part(part.tokens, part.first, part.last);
    part_bytes_ += part.text_bytes;
    if (part.last) count_document(std::exchange(part_bytes_, 0));
  }

  void add_document(std::span<const int32_t> tokens, int64_t text_bytes) {
    packer_.add_document(tokens);
    count_document(text_bytes);
  }

  void add_skipped(int64_t rows) { split_.skipped_rows += rows; }

  const std::string& work_dir() const { return writer_.work_dir(); }
  int64_t num_shards() const { return writer_.num_shards(); }
  int64_t num_tokens() const { return packer_.num_tokens(); }
  int64_t num_samples() const { return packer_.num_samples(); }

  /// Completes the files. The split keeps its temporary name.
  void finish(ConversionNote note) {
    packer_.finish();
    if (packer_.num_samples() == 0) {
      fail(ExitCode::kUnusable,
           "[data] the text for {} has {} tokens, too few for one sample of {}; use more text or smaller "
           "--concat-tokens",
           split_.dir, packer_.num_tokens(), note.concat_tokens);
    }
    split_.tokens = packer_.num_tokens();
    split_.dropped_tokens = packer_.dropped_tokens();
    split_.samples = packer_.num_samples();
    note.documents = split_.documents;
    note.text_bytes = split_.bytes;
    note.tokens = split_.tokens;
    note.dropped_tokens = split_.dropped_tokens;
    writer_.finish(std::move(note));
    split_.shards = writer_.num_shards();
  }

  SplitWriter& writer() { return writer_; }
  const ConvertedSplit& counts() const { return split_; }

 private:
  void write(std::span<const int32_t> sample) {
    writer_.write({encode_mds_array(sample.data(), static_cast<int64_t>(sample.size()), sizeof(int32_t))});
  }

  void count_document(int64_t text_bytes) {
    ++split_.documents;
    split_.bytes += text_bytes;
    split_.longest_bytes = std::max(split_.longest_bytes, text_bytes);
  }

  SplitWriter writer_;
  ConvertedSplit split_;
  int64_t part_bytes_ = 0;  // bytes of the unfinished document
  TokenPacker packer_;
};

SplitRules split_rules(const ConvertOptions& options) {
  return {options.out_dir,    options.split,  options.val_split,  options.val_fraction,
          options.size_limit, options.hashes, options.compression};
}

void check_options(const ConvertOptions& options) {
  const auto refuse = [](const std::string& what) { fail(ExitCode::kUsage, "[data] {}", what); };
  if (options.inputs.empty()) refuse("name at least one text file or folder to convert");
  if (options.concat_tokens < 2)
    refuse(fmt::format("a sample needs at least 2 tokens, got {}", options.concat_tokens));
}

/// True if there can be more than one document, so that a separator is needed.
bool has_many_documents(const std::vector<InputFile>& files) {
  return files.size() > 1 || (!files.empty() && files[0].format != TextFormat::kText);
}

/// Ids of a separator between documents: a special token where the text is one. This also holds for a
/// tokenizer.model, whose encode treats the text of a control token as ordinary characters.
std::vector<int32_t> separator_ids(const Tokenizer& tokenizer, const std::string& text) {
  const int32_t id = tokenizer.find(text);
  return id >= 0 && tokenizer.is_special(id) ? std::vector{id} : tokenizer.encode(text);
}

TokenPacker::Rules make_rules(const ConvertOptions& options, const Tokenizer& tokenizer,
                              const std::vector<InputFile>& files, std::vector<std::string>& warnings) {
  TokenPacker::Rules rules{.sample_tokens = options.concat_tokens, .no_wrap = options.no_wrap};
  rules.bos = separator_ids(tokenizer, options.bos_text);
  rules.eos = separator_ids(tokenizer, options.eos_text);
  const auto begin = tokenizer.text_begin(), end = tokenizer.text_end();
  const bool adds_tokens = !options.no_added_tokens && !(begin.empty() && end.empty());
  if (rules.bos.empty() && rules.eos.empty() && !adds_tokens && !options.no_separator &&
      has_many_documents(files)) {
    const std::string eos = find_eos_token(tokenizer);
    fail(ExitCode::kUsage,
         "[data] nothing would separate the documents: add --eos-text '{}'{}, or --no-separator to "
         "join them without one",
         eos.empty() ? "TOKEN" : eos, eos.empty() ? " with a special token of this tokenizer" : "");
  }
  for (const auto& [name, text, tokens, own] : {std::tuple{"bos", &options.bos_text, &rules.bos, &begin},
                                                std::tuple{"eos", &options.eos_text, &rules.eos, &end}}) {
    if (tokens->size() > 1)
      warnings.push_back(fmt::format("the {} text \"{}\" is {} tokens; one special token was probably meant",
                                     name, *text, tokens->size()));
    if (!tokens->empty() && *tokens == *own && adds_tokens)
      warnings.push_back(
          fmt::format("the tokenizer already adds \"{}\" to every document, so it would appear twice; leave "
                      "out --{}-text, or add --no-added-tokens",
                      *text, name));
  }
  return rules;
}

/// Deals the documents to the splits, in order.
class Dealer {
 public:
  /// `divides_text`: there are two documents, and the second one is for validation.
  Dealer(FileOps& files, const ConvertOptions& options, const TokenPacker::Rules& packing, bool divides_text,
         std::optional<ConversionState> left)
      : rules_(split_rules(options)),
        most_documents_(options.max_documents.value_or(INT64_MAX)),
        divides_text_(divides_text),
        documents_(left ? left->documents : 0) {
    const std::vector<std::string> names = rules_.names();
    for (size_t i = 0; i < names.size(); ++i)
      splits_.push_back(left ? std::make_unique<SplitInProgress>(files, rules_, names[i], packing,
                                                                 std::move(left->splits.at(i)))
                             : std::make_unique<SplitInProgress>(files, rules_, names[i], packing));
  }

  const std::string& work_dir() const { return splits_[0]->work_dir(); }
  int64_t num_shards() const {
    int64_t count = 0;
    for (const auto& split : splits_) count += split->num_shards();
    return count;
  }
  ConversionState state(int64_t chunks) const {
    ConversionState state{.chunks = chunks, .documents = documents_};
    for (const auto& split : splits_) state.splits.push_back(split->state());
    return state;
  }

  /// True if it has as many documents as options.max_documents allows.
  bool is_full() const { return documents_ >= most_documents_; }

  void add(const ChunkTokens& chunk) {
    if (chunk.format == TextFormat::kText) {
      split().add_part(chunk);
      documents_ += chunk.last;
      return;
    }
    size_t begin = 0;
    int64_t skipped = chunk.skipped.count;
    for (const ChunkTokens::Document& document : chunk.documents) {
      if (is_full()) return;
      split().add_skipped(document.skipped_rows);
      skipped -= document.skipped_rows;
      split().add_document(std::span(chunk.tokens).subspan(begin, document.end - begin), document.text_bytes);
      begin = document.end;
      ++documents_;
    }
    if (!is_full()) split().add_skipped(skipped);
  }

  void count(ConvertProgress& progress) const {
    progress.tokens = progress.samples = 0;
    for (const auto& split : splits_)
      progress.tokens += split->num_tokens(), progress.samples += split->num_samples();
  }

  /// `reasons`: why rows were skipped.
  std::vector<ConvertedSplit> publish(const ConversionNote& note, const std::string& key,
                                      const std::vector<std::string>& reasons, FileOps& files) {
    if (documents_ == 0 && !reasons.empty())
      fail(ExitCode::kUnusable, "[data] no row can be used; the first one: {}", reasons.front());
    if (!divides_text_ && rules_.validation_period() > documents_)
      fail(ExitCode::kUsage,
           "[data] {} documents are too few for a share of {} in {}; each text file, each line of JSONL "
           "and each row of the others is one document",
           documents_, rules_.val_fraction, rules_.val_split);
    std::vector<SplitWriter*> writers;
    std::vector<ConvertedSplit> counts;
    for (const auto& split : splits_) {
      split->finish(note);
      writers.push_back(&split->writer());
      counts.push_back(split->counts());
    }
    publish_together(files, rules_.out_dir, key, writers, counts);
    return counts;
  }

 private:
  SplitInProgress& split() {
    return *splits_[divides_text_ ? static_cast<size_t>(documents_ > 0) : rules_.split_of(documents_)];
  }

  const SplitRules rules_;
  const int64_t most_documents_;
  const bool divides_text_;
  int64_t documents_;
  std::vector<std::unique_ptr<SplitInProgress>> splits_;
};

std::vector<std::string> describe_inputs(const InputFiles& inputs, const ConvertOptions& options) {
  const auto count = [&](TextFormat format) {
    return std::count_if(inputs.files.begin(), inputs.files.end(),
                         [&](const InputFile& file) { return file.format == format; });
  };
  const auto text = count(TextFormat::kText), jsonl = count(TextFormat::kJsonl);
  const auto csv = count(TextFormat::kCsv) + count(TextFormat::kTsv);
  const auto parquet = count(TextFormat::kParquet), arrow = count(TextFormat::kArrow);
  const auto data_sets = count(TextFormat::kDataSet);
  std::vector<std::string> kinds;
  if (text > 0) kinds.push_back(fmt::format("{} as text", text));
  if (jsonl > 0) kinds.push_back(fmt::format("{} as JSONL (field \"{}\")", jsonl, options.rules.field));
  if (csv > 0) kinds.push_back(fmt::format("{} as CSV (column \"{}\")", csv, options.rules.field));
  if (parquet > 0)
    kinds.push_back(fmt::format("{} as Parquet (column \"{}\")", parquet, options.rules.field));
  if (arrow > 0) kinds.push_back(fmt::format("{} as Arrow (column \"{}\")", arrow, options.rules.field));
  if (data_sets > 0)
    kinds.push_back(fmt::format("{} as data sets (column \"{}\")", data_sets, options.rules.field));
  std::vector<std::string> notes;
  if (kinds.size() > 1) notes.push_back(fmt::format("files are read: {}", fmt::join(kinds, ", ")));
  notes.insert(notes.end(), inputs.notes.begin(), inputs.notes.end());
  return notes;
}

ConversionNote make_note(const ConvertOptions& options, const Tokenizer& tokenizer) {
  ConversionNote note{.tokenizer_hash = tokenizer.hash(),
                      .vocab_size = tokenizer.size(),
                      .bos_text = options.bos_text,
                      .eos_text = options.eos_text,
                      .no_wrap = options.no_wrap,
                      .concat_tokens = options.concat_tokens};
  note.keep_newlines = options.keep_newlines;
  if (options.no_added_tokens) return note;
  note.text_begin = tokenizer.text_begin();
  note.text_end = tokenizer.text_end();
  return note;
}

std::string key_of(const ConvertOptions& options, const Tokenizer& tokenizer, const InputFiles& inputs) {
  return conversion_key(
      fmt::format("text|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", tokenizer.hash(), options.rules.field,
                  static_cast<int>(options.rules.bad_rows), options.keep_newlines, options.no_added_tokens,
                  options.no_separator, options.concat_tokens, Json(options.bos_text).dump(),
                  Json(options.eos_text).dump(), options.no_wrap, options.max_documents.value_or(0)),
      split_rules(options), inputs.files);
}

/// Returns the byte at which the validation split begins in a text that is the only document.
std::optional<int64_t> validation_text_at(const ConvertOptions& options,
                                          const std::vector<InputFile>& files) {
  if (options.val_fraction == 0 || has_many_documents(files) || files.empty()) return std::nullopt;
  DocumentReader reader(files, {.keep_newlines = options.keep_newlines});
  int64_t bytes = 0;
  while (const auto chunk = reader.next()) bytes += std::ssize(chunk->text);
  return std::llround(static_cast<double>(bytes) * (1 - options.val_fraction));
}

/// Skips the chunks that are in the splits already.
void skip_chunks(DocumentReader& reader, int64_t chunks, ConvertProgress& progress) {
  for (int64_t i = 0; i < chunks; ++i)
    if (const auto chunk = reader.next()) progress.bytes_done += chunk->file_bytes;
}

}  // namespace

int64_t skipped_rows(const std::vector<ConvertedSplit>& splits) {
  int64_t count = 0;
  for (const ConvertedSplit& split : splits) count += split.skipped_rows;
  return count;
}

ConvertResult convert_text(const ConvertOptions& options, FileOps& files) {
  check_options(options);
  check_splits(split_rules(options));
  const auto tokenizer = load_tokenizer(options.tokenizer);
  const InputFiles inputs = find_input_files(options.inputs, options.rules);
  ConvertResult result{.notes = describe_inputs(inputs, options)};
  const TokenPacker::Rules rules = make_rules(options, *tokenizer, inputs.files, result.warnings);
  make_dirs(files, options.out_dir);
  const std::string key = key_of(options, *tokenizer, inputs);
  if (const auto complete = complete_publications(files, options.out_dir, key)) {
    result.splits = *complete;
    result.notes.push_back(kPublicationCompleted);
    return result;
  }
  check_free(split_rules(options));
  std::optional<ConversionState> left = adopt_conversion(files, split_rules(options), key);
  for (std::string& leftover : sweep_leftovers(files, options.out_dir, key))
    result.warnings.push_back(std::move(leftover));
  keep_tokenizer(files, options.out_dir, options.tokenizer);

  int64_t chunks_done = left ? left->chunks : 0;
  const std::optional<int64_t> validation_at = validation_text_at(options, inputs.files);
  if (validation_at)
    result.notes.push_back(fmt::format("{} is one document: its last {:g} % are {}", inputs.files[0].path,
                                       100 * options.val_fraction, options.val_split));
  Dealer dealer(files, options, rules, validation_at.has_value(), std::move(left));
  ConvertProgress progress;
  for (const InputFile& file : inputs.files) progress.bytes_total += file.bytes;
  const auto report = [&] {
    dealer.count(progress);
    if (options.progress) options.progress(progress);
  };
  const int threads = options.threads > 0
                          ? options.threads
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  DocumentReader reader(inputs.files, {.field = options.rules.field,
                                       .keep_newlines = options.keep_newlines,
                                       .second_document_at = validation_at,
                                       .open_data_set = open_data_set_texts});
  if (chunks_done > 0) {
    skip_chunks(reader, chunks_done, progress);
    dealer.count(progress);
    result.notes.push_back(continuation_note(progress.samples));
  }
  ChunkTokenizer chunks(*tokenizer, reader, !options.no_added_tokens, options.rules.bad_rows, threads);
  SkippedRows skipped;
  auto reported = std::chrono::steady_clock::now();
  StateSaver saver(files, key, options.save_every_s, dealer.num_shards());
  while (!dealer.is_full()) {
    const auto chunk = chunks.next();
    if (!chunk) break;
    dealer.add(*chunk);
    skipped.add(chunk->skipped);
    ++chunks_done;
    progress.bytes_done += chunk->file_bytes;
    saver.save_if_due(dealer.work_dir(), dealer.num_shards(), [&] { return dealer.state(chunks_done); });
    const auto now = std::chrono::steady_clock::now();
    if (now - reported < kProgressEvery) continue;
    reported = now;
    report();
  }
  result.splits = dealer.publish(make_note(options, *tokenizer), key, skipped.reasons, files);
  skipped.count = skipped_rows(result.splits);
  if (skipped.count > 0) result.warnings.push_back(skipped.text());
  progress.bytes_done = progress.bytes_total;
  report();
  return result;
}

}  // namespace tycho
