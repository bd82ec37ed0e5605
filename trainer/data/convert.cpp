// Threads tokenise, the caller's thread packs and writes; a split gets its name when it is complete.
#include "trainer/data/convert.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/data/chunk_tokenizer.h"
#include "trainer/data/conversion_note.h"
#include "trainer/data/mds_writer.h"
#include "trainer/data/token_packer.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kChunkBytes = 4 << 20;
constexpr auto kProgressEvery = std::chrono::milliseconds(100);

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
    writer_.emplace(
        files, work_dir_,
        MdsWriterOptions{.columns = {{"tokens", "ndarray:int32"}}, .size_limit = options.size_limit});
  }

  ~SplitInProgress() {
    std::error_code error;
    fs::remove_all(work_dir_, error);
  }

  void add(const TextChunk& chunk, const std::vector<int32_t>& tokens) {
    packer_.add(tokens, chunk.first, chunk.last);
    split_.documents += chunk.last;
    split_.bytes += chunk.end - chunk.begin;
  }

  int64_t num_tokens() const { return packer_.num_tokens(); }
  int64_t num_samples() const { return packer_.num_samples(); }

  /// Completes the files; the split still has its temporary name.
  void finish(ConversionNote note) {
    if (packer_.num_samples() == 0) {
      fail(ExitCode::kUnusable,
           "[data] the text for {} gives {} tokens, too few for one sample of {}; use more text or "
           "smaller --concat-tokens",
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
  if (!(options.val_fraction >= 0 && options.val_fraction < 1))
    refuse(fmt::format("val_fraction must be from 0 to less than 1, got {}", options.val_fraction));
  for (const std::string& split : {options.split, options.val_split})
    if (split.empty() || split[0] == '.' || split.find('/') != std::string::npos)
      refuse(fmt::format("\"{}\" cannot be the name of a split", split));
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
  const std::string text = read_file(options.tokenizer), path = options.out_dir + "/tokenizer.json";
  std::error_code error;
  if (!fs::exists(path, error)) return write_file_atomically(files, path, text);
  if (read_file(path) != text) {
    fail(ExitCode::kUsage,
         "[data] {} is another tokenizer than {}; use that one or another folder for the data set", path,
         options.tokenizer);
  }
}

std::vector<std::string> find_leftovers(const ConvertOptions& options) {
  std::vector<std::string> warnings;
  std::error_code error;
  for (fs::directory_iterator it(options.out_dir, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().find(".partial-") != std::string::npos)
      warnings.push_back(
          fmt::format("{} is left over from an interrupted conversion, or belongs to one that is running; "
                      "delete it in the first case",
                      it->path().string()));
  return warnings;
}

TokenPacker::Rules make_rules(const ConvertOptions& options, const Tokenizer& tokenizer,
                              std::vector<std::string>& warnings) {
  TokenPacker::Rules rules{.sample_tokens = options.concat_tokens, .no_wrap = options.no_wrap};
  rules.bos = tokenizer.encode(options.bos_text);
  rules.eos = tokenizer.encode(options.eos_text);
  if (rules.bos.empty() && rules.eos.empty())
    warnings.push_back("nothing separates the documents; --eos-text '<|endoftext|>' or the like would");
  for (const auto& [name, text, tokens] :
       {std::tuple{"bos", &options.bos_text, &rules.bos}, std::tuple{"eos", &options.eos_text, &rules.eos}})
    if (tokens->size() > 1)
      warnings.push_back(fmt::format("the {} text \"{}\" is {} tokens; one special token was probably meant",
                                     name, *text, tokens->size()));
  return rules;
}

/// Every how many documents one goes to the validation split; 0: none does.
int64_t validation_period(const ConvertOptions& options, size_t documents) {
  if (options.val_fraction == 0) return 0;
  const auto period = std::max<int64_t>(2, std::llround(1 / options.val_fraction));
  if (period > static_cast<int64_t>(documents)) {
    fail(ExitCode::kUsage,
         "[data] {} documents are too few to give a share of {} to {}; a document is one file", documents,
         options.val_fraction, options.val_split);
  }
  return period;
}

}  // namespace

ConvertResult convert_text(const ConvertOptions& options, FileOps& files) {
  check_options(options);
  const auto tokenizer = load_tokenizer(options.tokenizer);
  const std::vector<std::string> documents = list_documents(options.inputs, options.extensions);
  const std::vector<TextChunk> chunks = plan_chunks(documents, tokenizer->splits_at_words(), kChunkBytes);
  const int64_t period = validation_period(options, documents.size());
  check_free(options.out_dir + "/" + options.split);
  if (period > 0) check_free(options.out_dir + "/" + options.val_split);
  make_dirs(files, options.out_dir);
  ConvertResult result{.splits = {}, .warnings = find_leftovers(options)};
  copy_tokenizer(files, options);

  const TokenPacker::Rules rules = make_rules(options, *tokenizer, result.warnings);
  std::vector<std::unique_ptr<SplitInProgress>> splits;
  splits.push_back(std::make_unique<SplitInProgress>(files, options, options.split, rules));
  if (period > 0)
    splits.push_back(std::make_unique<SplitInProgress>(files, options, options.val_split, rules));

  ConvertProgress progress;
  for (const TextChunk& chunk : chunks) progress.bytes_total += chunk.end - chunk.begin;
  const auto report = [&] {
    progress.tokens = progress.samples = 0;
    for (const auto& split : splits)
      progress.tokens += split->num_tokens(), progress.samples += split->num_samples();
    if (options.progress) options.progress(progress);
  };
  const int threads =
      options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  ChunkTokenizer tokens(*tokenizer, documents, chunks, threads);
  auto reported = std::chrono::steady_clock::now();
  for (const TextChunk& chunk : chunks) {
    const bool validation = period > 0 && chunk.document % period == period - 1;
    splits[validation ? 1 : 0]->add(chunk, tokens.next());
    progress.bytes_done += chunk.end - chunk.begin;
    const auto now = std::chrono::steady_clock::now();
    if (now - reported < kProgressEvery) continue;
    reported = now;
    report();
  }
  ConversionNote note{.tokenizer_hash = tokenizer->hash(),
                      .vocab_size = tokenizer->size(),
                      .bos_text = options.bos_text,
                      .eos_text = options.eos_text,
                      .no_wrap = options.no_wrap,
                      .concat_tokens = options.concat_tokens};
  for (const auto& split : splits) split->finish(note);
  for (const auto& split : splits) result.splits.push_back(split->publish());
  files.sync_dir(options.out_dir);
  report();
  return result;
}

}  // namespace tycho
