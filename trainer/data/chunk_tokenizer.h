// Tokenises the chunks of many documents on several threads and hands them out in order.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "trainer/data/documents.h"
#include "trainer/data/tokenizer.h"

namespace tycho {

/// The arguments must outlive it. A few chunks per thread are in memory at a time.
class ChunkTokenizer {
 public:
  ChunkTokenizer(const Tokenizer& tokenizer, const std::vector<std::string>& paths,
                 const std::vector<TextChunk>& chunks, int threads);

  /// The tokens of the next chunk; called once per chunk by one thread. Errors of the threads are thrown
  /// here.
  std::vector<int32_t> next();

 private:
  void work(const std::stop_token& stop);

  const Tokenizer& tokenizer_;
  const std::vector<std::string>& paths_;
  const std::vector<TextChunk>& chunks_;
  size_t window_;  // how far the threads may run ahead
  std::mutex mutex_;
  std::condition_variable_any changed_;
  size_t next_chunk_ = 0, next_result_ = 0;
  std::map<size_t, std::vector<int32_t>> results_;
  std::exception_ptr error_;
  std::vector<std::jthread> threads_;  // last: they stop before what they use goes
};

}  // namespace tycho
