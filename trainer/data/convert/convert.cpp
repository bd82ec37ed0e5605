// Worker threads tokenise, the caller's thread packs and writes; a split gets its final name when it is
// complete.
#include "trainer/data/convert/convert.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/data/compression/compression.h"
#include "trainer/data/convert/chunk_tokenizer.h"
#include "trainer/data/convert/data_set_records.h"
#include "trainer/data/convert/token_packer.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/tokenizer/special_tokens.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr auto kProgressEvery = std::chrono::milliseconds(100);

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// One split being written: its packer, its shards in a temporary folder, its counts.
class SplitInProgress {
 public:
  SplitInProgress(FileOps& files, const ConvertOptions& options, const std::string& split,
                  TokenPacker::Rules rules)
      : files_(files),
        final_dir_(options.out_dir + "/" + split),
        work_dir_(fmt::format("{}/.{}.partial-{}", options.out_dir, split, ::getpid())),
        split_({.dir = final_dir_}),
        packer_(std::move(rules), [this](std::span<const int32_t> sample) { write(sample); }) {
    std::error_code error;
    fs::remove_all(work_dir_, error);  // only an earlier process of the same number can have left it
    files.make_dir(work_dir_);
    writer_.emplace(files, work_dir_,
                    MdsWriterOptions{.columns = {{"tokens", "ndarray:int32"}},
                                     .size_limit = options.size_limit,
                                     .hashes = sorted(options.hashes),
                                     .compression = options.compression});
  }

  ~SplitInProgress() {
    std::error_code error;
    fs::remove_all(work_dir_, error);
  }

  /// Some text of one document.
  void add_part(const ChunkTokens& part) {
    packer_.add_part(part.tokens, part.first, part.last);
    split_.documents += part.last;
    split_.bytes += part.text_bytes;
  }

  void add_document(std::span<const int32_t> tokens, int64_t text_bytes) {
    packer_.add_document(tokens);
    ++split_.documents;
    split_.bytes += text_bytes;
  }

  int64_t num_tokens() const { return packer_.num_tokens(); }
  int64_t num_samples() const { return packer_.num_samples(); }

  /// Completes the files; the split still has its temporary name.
  void finish(ConversionNote note) {
    packer_.finish();
    if (packer_.num_samples() == 0) {
      fail(ExitCode::kUnusable,
           "[data] the text for {} has {} tokens, too few for one sample of {}; use more text or smaller "
           "--concat-tokens",
           final_dir_, packer_.num_tokens(), note.concat_tokens);
    }
    writer_->finish();
    split_.tokens = packer_.num_tokens();
    split_.dropped_tokens = packer_.dropped_tokens();
    split_.samples = packer_.num_samples();
    split_.shards = writer_->num_shards();
    note.documents = split_.documents;
    note.text_bytes = split_.bytes;
    note.tokens = split_.tokens;
    note.dropped_tokens = split_.dropped_tokens;
    note.samples = split_.samples;
    note.shards = {writer_->shard_hashes().begin(), writer_->shard_hashes().end()};
    write_conversion_note(files_, work_dir_, note);
    files_.sync_dir(work_dir_);
  }

  ConvertedSplit publish() {
    files_.rename(work_dir_, final_dir_);
    return split_;
  }

 private:
  void write(std::span<const int32_t> sample) {
    writer_->write({encode_mds_array(sample.data(), static_cast<int64_t>(sample.size()), sizeof(int32_t))});
  }

  FileOps& files_;
  std::string final_dir_, work_dir_;
  ConvertedSplit split_;
  TokenPacker packer_;
  std::optional<MdsWriter> writer_;
};

void check_options(const ConvertOptions& options) {
  const auto refuse = [](const std::string& what) { fail(ExitCode::kUsage, "[data] {}", what); };
  if (options.inputs.empty()) refuse("name at least one text file or folder to convert");
  if (options.out_dir.empty()) refuse("name a folder for the data set");
  if (options.concat_tokens < 2)
    refuse(fmt::format("a sample needs at least 2 tokens, got {}", options.concat_tokens));
  for (const std::string& name : options.hashes)
    if (shard_hash_digits(name) == 0)
      refuse(fmt::format("index.json can record the checksums {}, not {}",
                         fmt::join(shard_hash_names(), ", "), name));
  if (!options.compression.empty()) parse_compression(options.compression, "[data] --compression");
  if (!(options.val_fraction >= 0 && options.val_fraction < 1))
    refuse(fmt::format("val_fraction must be from 0 to less than 1, got {}", options.val_fraction));
  for (const std::string& split : {options.split, options.val_split})
    if (split.empty() || split[0] == '.' || split.find('/') != std::string::npos)
      refuse(fmt::format("\"{}\" is not a valid split name", split));
  if (options.split == options.val_split && options.val_fraction > 0)
    refuse("the split and the validation split need different names");
}

void check_free(const std::string& dir) {
  std::error_code error;
  if (fs::exists(dir, error) && !fs::is_empty(dir, error)) {
    fail(ExitCode::kUsage, "[data] {} is already there; choose another folder or split, or delete it first",
         dir);
  }
}

/// The data set keeps its tokenizer; one that has another already is left alone.
void copy_tokenizer(FileOps& files, const ConvertOptions& options) {
  const std::string text = read_file(options.tokenizer);
  const std::string path = options.out_dir + "/" + tokenizer_file_name(text);
  const std::string config = tokenizer_config_beside(options.tokenizer);
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (!config.empty()) write_file_atomically(files, options.out_dir + "/" + kTokenizerConfigFile, config);
    return write_file_atomically(files, path, text);
  }
  if (read_file(path) != text) {
    fail(ExitCode::kUsage,
         "[data] {} is a different tokenizer than {}; use the existing one, or another folder for the data "
         "set",
         path, options.tokenizer);
  }
}

std::vector<std::string> find_leftovers(const ConvertOptions& options) {
  std::vector<std::string> warnings;
  std::error_code error;
  for (fs::directory_iterator it(options.out_dir, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().find(".partial-") != std::string::npos)
      warnings.push_back(
          fmt::format("{} is left over from an interrupted conversion, or belongs to one that is running; "
                      "delete it if nothing is running",
                      it->path().string()));
  return warnings;
}

/// Whether there can be more documents than one, which something has to keep apart.
bool has_many_documents(const std::vector<InputFile>& files) {
  return files.size() > 1 || (!files.empty() && files[0].format != TextFormat::kText);
}

/// Ids of what stands between documents: a special token where the text is one, also for a tokenizer.model,
/// whose encode takes the text of a control token for ordinary characters.
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

/// Every how many documents one goes to the validation split; 0: none does.
int64_t validation_period(const ConvertOptions& options) {
  if (options.val_fraction == 0) return 0;
  return std::max<int64_t>(2, std::llround(1 / options.val_fraction));
}

/// Deals the documents out to the splits, in order.
class Dealer {
 public:
  Dealer(FileOps& files, const ConvertOptions& options, const TokenPacker::Rules& rules)
      : options_(options), period_(validation_period(options)) {
    splits_.push_back(std::make_unique<SplitInProgress>(files, options, options.split, rules));
    if (period_ > 0)
      splits_.push_back(std::make_unique<SplitInProgress>(files, options, options.val_split, rules));
  }

  void add(const ChunkTokens& chunk) {
    if (chunk.format == TextFormat::kText) {
      split().add_part(chunk);
      documents_ += chunk.last;
      return;
    }
    size_t begin = 0;
    for (const auto& [end, text_bytes] : chunk.documents) {
      split().add_document(std::span(chunk.tokens).subspan(begin, end - begin), text_bytes);
      begin = end;
      ++documents_;
    }
  }

  void count(ConvertProgress& progress) const {
    progress.tokens = progress.samples = 0;
    for (const auto& split : splits_)
      progress.tokens += split->num_tokens(), progress.samples += split->num_samples();
  }

  std::vector<ConvertedSplit> publish(const ConversionNote& note) {
    if (period_ > documents_)
      fail(ExitCode::kUsage,
           "[data] {} documents are too few for a share of {} in {}; each text file, each line of JSONL "
           "and each row of the others is one document",
           documents_, options_.val_fraction, options_.val_split);
    for (const auto& split : splits_) split->finish(note);
    std::vector<ConvertedSplit> done;
    for (const auto& split : splits_) done.push_back(split->publish());
    return done;
  }

 private:
  SplitInProgress& split() {
    const bool validation = period_ > 0 && documents_ % period_ == period_ - 1;
    return *splits_[validation ? 1 : 0];
  }

  const ConvertOptions& options_;
  int64_t period_, documents_ = 0;
  std::vector<std::unique_ptr<SplitInProgress>> splits_;
};

std::vector<std::string> describe_inputs(const InputFiles& inputs, const ConvertOptions& options) {
  const auto count = [&](TextFormat format) {
    return std::count_if(inputs.files.begin(), inputs.files.end(),
                         [&](const InputFile& file) { return file.format == format; });
  };
  const auto text = count(TextFormat::kText), jsonl = count(TextFormat::kJsonl);
  const auto parquet = count(TextFormat::kParquet), data_sets = count(TextFormat::kDataSet);
  std::vector<std::string> kinds;
  if (text > 0) kinds.push_back(fmt::format("{} as text", text));
  if (jsonl > 0) kinds.push_back(fmt::format("{} as JSONL (field \"{}\")", jsonl, options.rules.field));
  if (parquet > 0)
    kinds.push_back(fmt::format("{} as Parquet (column \"{}\")", parquet, options.rules.field));
  if (data_sets > 0)
    kinds.push_back(fmt::format("{} as data sets (column \"{}\")", data_sets, options.rules.field));
  std::vector<std::string> notes;
  if (kinds.size() > 1) notes.push_back(fmt::format("files are read: {}", fmt::join(kinds, ", ")));
  if (inputs.skipped.empty()) return notes;
  constexpr size_t kNamesShown = 5;
  const std::vector<std::string> shown(inputs.skipped.begin(),
                                       inputs.skipped.begin() + std::min(kNamesShown, inputs.skipped.size()));
  notes.push_back(fmt::format(
      "skipped, neither text, JSONL nor Parquet by name: {}{}; --ext selects other endings",
      fmt::join(shown, ", "),
      inputs.skipped.size() > kNamesShown ? fmt::format(" and {} more", inputs.skipped.size() - kNamesShown)
                                          : ""));
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

}  // namespace

ConvertResult convert_text(const ConvertOptions& options, FileOps& files) {
  check_options(options);
  const auto tokenizer = load_tokenizer(options.tokenizer);
  const InputFiles inputs = find_input_files(options.inputs, options.rules);
  check_free(options.out_dir + "/" + options.split);
  if (options.val_fraction > 0) check_free(options.out_dir + "/" + options.val_split);
  ConvertResult result{.notes = describe_inputs(inputs, options)};
  const TokenPacker::Rules rules = make_rules(options, *tokenizer, inputs.files, result.warnings);
  make_dirs(files, options.out_dir);
  for (std::string& leftover : find_leftovers(options)) result.warnings.push_back(std::move(leftover));
  copy_tokenizer(files, options);

  Dealer dealer(files, options, rules);
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
                                       .open_data_set = open_data_set_texts});
  ChunkTokenizer chunks(*tokenizer, reader, !options.no_added_tokens, threads);
  auto reported = std::chrono::steady_clock::now();
  while (const auto chunk = chunks.next()) {
    dealer.add(*chunk);
    progress.bytes_done += chunk->file_bytes;
    const auto now = std::chrono::steady_clock::now();
    if (now - reported < kProgressEvery) continue;
    reported = now;
    report();
  }
  result.splits = dealer.publish(make_note(options, *tokenizer));
  files.sync_dir(options.out_dir);
  progress.bytes_done = progress.bytes_total;
  report();
  return result;
}

}  // namespace tycho
