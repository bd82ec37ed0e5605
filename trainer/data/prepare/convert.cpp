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
#include "trainer/data/prepare/document_dealer.h"
#include "trainer/data/prepare/leftovers.h"
#include "trainer/data/prepare/publication.h"
#include "trainer/data/prepare/split_writer.h"
#include "trainer/data/prepare/token_packer.h"
#include "trainer/data/tokenizer/chunk_tokenizer.h"
#include "trainer/data/tokenizer/special_tokens.h"

namespace tycho {
namespace {

constexpr auto kProgressEvery = std::chrono::milliseconds(100);

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
      fmt::format("text|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", tokenizer.hash(), options.rules.field,
                  static_cast<int>(options.rules.bad_rows), options.keep_newlines, options.no_added_tokens,
                  options.no_separator, options.concat_tokens, Json(options.bos_text).dump(),
                  Json(options.eos_text).dump(), options.no_wrap, options.max_documents.value_or(0),
                  options.max_samples.value_or(0)),
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

/// Chunks that are in the splits already: whole files, and some of the next one.
struct ChunksDone {
  int64_t file = 0, chunks = 0;

  void add(int64_t of_file) {
    if (of_file != file) file = of_file, chunks = 0;
    ++chunks;
  }
};

/// Skips the chunks of the first file of `reader` that are done.
void skip_done(DocumentReader& reader, const std::vector<InputFile>& files, const ChunksDone& done,
               ConvertProgress& progress) {
  for (int64_t i = 0; i < done.file; ++i) progress.bytes_done += files[static_cast<size_t>(i)].bytes;
  for (int64_t i = 0; i < done.chunks; ++i)
    if (const auto chunk = reader.next()) progress.bytes_done += chunk->file_bytes;
}

/// Leaves the state of a conversion whose files of the hub do not come any more, and fails.
[[noreturn]] void fail_to_continue(FileOps& files, const std::string& key, DocumentDealer& dealer,
                                   const ChunksDone& done, const Error& why) {
  try {
    write_conversion_state(files, dealer.work_dir(), key, dealer.state(done.file, done.chunks));
  } catch (const Error&) {
    throw why;
  }
  dealer.keep();
  ConvertProgress progress;
  dealer.count(progress);
  fail(why.code(), "{}\nNothing is published; the same command goes on after {} samples", why.what(),
       progress.samples);
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
  InputRules input_rules = options.rules;
  if (!options.keeps_fetched) input_rules.passing_folder = passing_folder_of(options.out_dir);
  const InputFiles inputs = find_input_files(options.inputs, input_rules);
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

  ChunksDone done;
  if (left) done = {left->file, left->chunks};
  const std::optional<int64_t> validation_at = validation_text_at(options, inputs.files);
  if (validation_at)
    result.notes.push_back(fmt::format("{} is one document: its last {:g} % are {}", inputs.files[0].path,
                                       100 * options.val_fraction, options.val_split));
  DocumentDealer dealer(files, options, rules, validation_at.has_value(), std::move(left));
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
                                       .open_data_set = open_data_set_texts,
                                       .first_file = static_cast<size_t>(done.file)});
  if (done.file + done.chunks > 0) {
    skip_done(reader, inputs.files, done, progress);
    dealer.count(progress);
    result.notes.push_back(continuation_note(progress.samples));
  }
  ChunkTokenizer chunks(*tokenizer, reader, !options.no_added_tokens, options.rules.bad_rows, threads);
  SkippedRows skipped;
  auto reported = std::chrono::steady_clock::now();
  StateSaver saver(files, key, options.save_every_s, dealer.num_shards());
  while (!dealer.is_full()) {
    std::optional<ChunkTokens> chunk;
    try {
      chunk = chunks.next();
    } catch (const Error& error) {
      if (error.code() != ExitCode::kStorage || inputs.files.empty() || !inputs.files[0].lender) throw;
      fail_to_continue(files, key, dealer, done, error);
    }
    if (!chunk) break;
    dealer.add(*chunk);
    skipped.add(chunk->skipped);
    done.add(static_cast<int64_t>(chunk->file));
    progress.bytes_done += chunk->file_bytes;
    if (!dealer.is_full())
      saver.save_if_due(dealer.work_dir(), dealer.num_shards(),
                        [&] { return dealer.state(done.file, done.chunks); });
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
