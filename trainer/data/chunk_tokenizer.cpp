// Threads take chunks in order, so the one that is waited for is always in work.
#include "trainer/data/chunk_tokenizer.h"

namespace tycho {

namespace {
constexpr size_t kChunksPerThread = 4;
}

ChunkTokenizer::ChunkTokenizer(const Tokenizer& tokenizer, const std::vector<std::string>& paths,
                               const std::vector<TextChunk>& chunks, int threads)
    : tokenizer_(tokenizer),
      paths_(paths),
      chunks_(chunks),
      window_(kChunksPerThread * static_cast<size_t>(threads)) {
  for (int i = 0; i < threads; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

std::vector<int32_t> ChunkTokenizer::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || results_.contains(next_result_); });
  if (error_) std::rethrow_exception(error_);
  std::vector<int32_t> tokens = std::move(results_.extract(next_result_++).mapped());
  changed_.notify_all();
  return tokens;
}

void ChunkTokenizer::work(const std::stop_token& stop) {
  try {
    while (true) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return next_chunk_ < next_result_ + window_; })) return;
      if (error_ || next_chunk_ >= chunks_.size()) return;
      const size_t number = next_chunk_++;
      lock.unlock();
      std::vector<int32_t> tokens = tokenizer_.encode(read_chunk(paths_, chunks_[number]));
      lock.lock();
      results_.emplace(number, std::move(tokens));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    changed_.notify_all();
  }
}

}  // namespace tycho
