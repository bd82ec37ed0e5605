// Every thread counts chunks of the files into its own map; the maps are added at the end.
#include <atomic>
#include <mutex>
#include <thread>

#include "trainer/base/in_parallel.h"
#include "trainer/data/sources/document_reader.h"
#include "trainer/data/tokenizer/bpe_trainer.h"
#include "trainer/data/tokenizer/patterns/piece_scanner.h"

namespace tycho {
namespace {

void count_text(std::string_view text, WordCounts& words) {
  PieceScanner scanner(SplitPattern::kGpt2, text);
  for (std::string_view piece = scanner.next(); !piece.empty(); piece = scanner.next()) {
    const auto found = words.find(piece);
    if (found != words.end()) {
      ++found->second;
    } else {
      words.emplace(piece, 1);
    }
  }
}

/// Counts each line as one text, its newline included.
void count_lines(std::string_view text, WordCounts& words) {
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view line =
        text.substr(0, newline == std::string_view::npos ? text.size() : newline + 1);
    count_text(line, words);
    text.remove_prefix(line.size());
  }
}

/// Gives chunks to several threads, and reports how much of the files has been read.
class SharedReader {
 public:
  explicit SharedReader(const std::vector<InputFile>& files, ReadRules rules)
      : reader_(files, std::move(rules)) {
    for (const InputFile& file : files) bytes_total_ += file.bytes;
  }
  std::optional<TextChunk> next() {
    const std::lock_guard lock(mutex_);
    if (stopped_) return std::nullopt;
    std::optional<TextChunk> chunk = reader_.next();
    if (chunk) bytes_read_ += chunk->file_bytes;
    return chunk;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  double share() const {
    return bytes_total_ == 0
               ? 1
               : std::min(1.0, static_cast<double>(bytes_read_) / static_cast<double>(bytes_total_));
  }
  const DocumentReader& reader() const { return reader_; }

 private:
  std::mutex mutex_;
  DocumentReader reader_;
  int64_t bytes_total_ = 0;
  std::atomic<int64_t> bytes_read_ = 0;
  bool stopped_ = false;
};

}  // namespace

WordCounts count_words(const std::vector<InputFile>& files, const BpeTrainOptions& options) {
  SharedReader chunks(files, {.field = options.field, .keep_newlines = true, .cut = CutAt::kWords});
  std::mutex mutex;
  WordCounts total;
  const std::thread::id caller = std::this_thread::get_id();
  const auto work = [&] {
    WordCounts words;
    const auto count = [&](std::string_view text) {
      options.whole_files ? count_text(text, words) : count_lines(text, words);
    };
    OnBadRow on_bad_row;
    if (options.on_bad_row) {
      on_bad_row = [&](const std::string& why) {
        const std::lock_guard lock(mutex);
        options.on_bad_row(why);
      };
    }
    while (const auto chunk = chunks.next()) {
      if (chunk->format == TextFormat::kText) {
        count(chunk->text);
      } else {
        const auto count_document = [&](std::string_view text) { count_text(text, words); };
        for_each_record(*chunk, chunks.reader().file(*chunk), options.field, count_document, on_bad_row);
      }
      if (options.progress && std::this_thread::get_id() == caller)
        options.progress(chunks.share(), "count words");
    }
    const std::lock_guard lock(mutex);
    if (total.empty()) return total.swap(words);
    for (const auto& [word, times] : words) total[word] += times;
  };
  const size_t wanted =
      options.threads > 0 ? static_cast<size_t>(options.threads) : std::thread::hardware_concurrency();
  in_parallel(wanted, wanted, [&](size_t) {
    try {
      work();
    } catch (...) {
      chunks.stop();
      throw;
    }
  });
  // The helpers may have taken every chunk; report the phase at least once.
  if (options.progress) options.progress(1, "count words");
  return total;
}

}  // namespace tycho
