// Every thread counts chunks of the files into a map of its own; the maps are added up at the end.
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "trainer/data/bpe_trainer.h"
#include "trainer/data/documents.h"
#include "trainer/data/pretokenize.h"

namespace tycho {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;

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

/// One text per line, its newline included.
void count_lines(std::string_view text, WordCounts& words) {
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view line =
        text.substr(0, newline == std::string_view::npos ? text.size() : newline + 1);
    count_text(line, words);
    text.remove_prefix(line.size());
  }
}

}  // namespace

WordCounts count_words(const std::vector<std::string>& files, const BpeTrainOptions& options) {
  const std::vector<TextChunk> chunks = plan_chunks(files, true, kChunkBytes);
  std::atomic<size_t> next_chunk = 0, done = 0;
  std::mutex mutex;
  std::exception_ptr error;
  WordCounts total;
  const auto work = [&](bool reports) {
    try {
      WordCounts words;
      for (size_t i = next_chunk++; i < chunks.size(); i = next_chunk++) {
        const std::string text = read_chunk(files, chunks[i]);
        options.whole_files ? count_text(text, words) : count_lines(text, words);
        ++done;
        if (reports && options.progress)
          options.progress(static_cast<double>(done) / static_cast<double>(chunks.size()), "count words");
      }
      const std::lock_guard lock(mutex);
      if (total.empty()) return total.swap(words);
      for (const auto& [word, count] : words) total[word] += count;
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next_chunk = chunks.size();
    }
  };
  const int wanted =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < wanted; ++i) helpers.emplace_back(work, false);
    work(true);
  }
  if (error) std::rethrow_exception(error);
  // The helpers may have taken every chunk: the phase is reported once at least.
  if (options.progress) options.progress(1, "count words");
  return total;
}

}  // namespace tycho
