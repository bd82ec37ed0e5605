// The order of merges equals that of Hugging Face's BpeTrainer to the last tie, so its bookkeeping is
// reproduced: an entry of the queue holds the words in which its pair was new, and a pair's count is not
// reset by its own merge.
#include "trainer/data/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/byte_level.h"

namespace tycho {
namespace {

constexpr int kProgressEvery = 64;  // merges

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

/// Numbers pairs in the order of arrival.
class PairNumbers {
 public:
  PairNumbers() : slots_(1 << 16, kFree) {}
  uint32_t operator[](uint64_t pair) {
    size_t i = slot(pair);
    while (slots_[i] != kFree && pairs_[slots_[i]] != pair) i = (i + 1) & (slots_.size() - 1);
    if (slots_[i] != kFree) return slots_[i];
    slots_[i] = static_cast<uint32_t>(pairs_.size());
    pairs_.push_back(pair);
    if (pairs_.size() * 2 > slots_.size()) grow();
    return static_cast<uint32_t>(pairs_.size() - 1);
  }
  uint64_t pair(uint32_t number) const { return pairs_[number]; }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  size_t slot(uint64_t pair) const {
    return ((pair ^ pair >> 29) * 0x9E3779B97F4A7C15ull >> 32) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(slots_.size() * 2, kFree);
    for (uint32_t number = 0; number < pairs_.size(); ++number) {
      size_t i = slot(pairs_[number]);
      while (slots_[i] != kFree) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = number;
    }
  }
  std::vector<uint32_t> slots_;
  std::vector<uint64_t> pairs_;
};

constexpr const char* kUnknownToken = "<unk>";

/// Returns the size of the smallest vocabulary with a token for each byte.
int64_t all_bytes_size(const BpeTrainOptions& options) {
  return 256 + static_cast<int64_t>(options.special_tokens.size());
}

std::vector<bool> bytes_in_use(const WordCounts& words) {
  std::vector<bool> used(256);
  for (const auto& [text, count] : words)
    for (const char c : text) used[static_cast<uint8_t>(c)] = true;
  return used;
}

/// Throws Error if a small vocabulary lacks room for the bytes that the texts use.
void check_size(const WordCounts& words, const BpeTrainOptions& options) {
  if (options.vocab_size >= all_bytes_size(options)) return;
  const std::vector<bool> used = bytes_in_use(words);
  const auto bytes = std::count(used.begin(), used.end(), true);
  const auto& specials = options.special_tokens;
  const bool has_unknown = std::find(specials.begin(), specials.end(), kUnknownToken) != specials.end();
  const int64_t smallest = bytes + std::ssize(specials) + (has_unknown ? 0 : 1);
  if (options.vocab_size < smallest)
    fail(ExitCode::kUsage,
         "[tokenizer] expected a vocabulary of {} or more, got {}: the texts use {} different bytes, beside "
         "{} "
         "special tokens and {}; from {} on all 256 bytes have tokens",
         smallest, options.vocab_size, bytes, specials.size(), kUnknownToken, all_bytes_size(options));
}

class MergeLearner {
 public:
  MergeLearner(const WordCounts& words, const BpeTrainOptions& options);
  TrainedVocabulary learn();

 private:
  struct Word {
    size_t begin;     // in symbols_
    uint32_t length;  // shrinks with every merge
    int64_t count;
  };
  struct Pair {
    int64_t count = 0;
    std::vector<uint32_t> arrived;  // words where it is new since the queue was last filled
  };
  struct Entry {
    int64_t count;
    uint64_t pair;
    uint32_t number;
    std::vector<uint32_t> words;
    bool operator<(const Entry& b) const { return count != b.count ? count < b.count : pair > b.pair; }
  };

  int32_t add_token(const std::string& text);
  void change(int32_t left, int32_t right, int64_t amount, uint32_t word);
  void fill_queue();
  Entry pop();
  void merge_in_word(uint32_t index, int32_t left, int32_t right, int32_t merged);

  const BpeTrainOptions& options_;
  TrainedVocabulary vocabulary_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<int32_t> symbols_;
  std::vector<Word> words_;
  PairNumbers numbers_;
  std::vector<Pair> pairs_;        // by number
  std::vector<uint32_t> touched_;  // numbers of the pairs with arrivals
  std::vector<Entry> queue_;       // a heap
};

MergeLearner::MergeLearner(const WordCounts& words, const BpeTrainOptions& options) : options_(options) {
  for (const std::string& token : options.special_tokens)
    if (!ids_.contains(token)) vocabulary_.special_tokens.push_back(token), add_token(token);
  const std::vector<bool> used = bytes_in_use(words);
  std::vector<int> bytes;
  if (options.vocab_size < all_bytes_size(options)) {
    vocabulary_.unknown = kUnknownToken;
    if (!ids_.contains(kUnknownToken))
      vocabulary_.special_tokens.push_back(kUnknownToken), add_token(kUnknownToken);
  }
  for (int byte = 0; byte < 256; ++byte)
    if (vocabulary_.unknown.empty() || used[static_cast<size_t>(byte)]) bytes.push_back(byte);
  std::sort(bytes.begin(), bytes.end(), [](int a, int b) {
    return byte_level_code(static_cast<uint8_t>(a)) < byte_level_code(static_cast<uint8_t>(b));
  });
  int32_t id_of_byte[256] = {};
  for (const int byte : bytes) {
    const char c = static_cast<char>(byte);
    id_of_byte[byte] = add_token(to_byte_level({&c, 1}));
  }
  for (const auto& [text, count] : words) {
    words_.push_back({symbols_.size(), static_cast<uint32_t>(text.size()), count});
    for (const char c : text) symbols_.push_back(id_of_byte[static_cast<uint8_t>(c)]);
  }
  for (uint32_t w = 0; w < words_.size(); ++w) {
    const int32_t* symbol = symbols_.data() + words_[w].begin;
    for (uint32_t i = 0; i + 1 < words_[w].length; ++i) change(symbol[i], symbol[i + 1], words_[w].count, w);
  }
  fill_queue();
}

/// Returns the id of a token's text. Adds the token if it is new.
int32_t MergeLearner::add_token(const std::string& text) {
  const auto [it, is_new] = ids_.emplace(text, static_cast<int32_t>(vocabulary_.tokens.size()));
  if (is_new) vocabulary_.tokens.push_back(text);
  return it->second;
}

void MergeLearner::change(int32_t left, int32_t right, int64_t amount, uint32_t word) {
  const uint32_t number = numbers_[pair_of(left, right)];
  if (number == pairs_.size()) pairs_.emplace_back();
  Pair& pair = pairs_[number];
  pair.count += amount;
  if (amount < 0 || (!pair.arrived.empty() && pair.arrived.back() == word)) return;
  if (pair.arrived.empty()) touched_.push_back(number);
  pair.arrived.push_back(word);
}

void MergeLearner::fill_queue() {
  for (const uint32_t number : touched_) {
    Pair& pair = pairs_[number];
    std::vector<uint32_t> words = std::exchange(pair.arrived, {});
    if (pair.count <= 0) continue;
    queue_.push_back({pair.count, numbers_.pair(number), number, std::move(words)});
    std::push_heap(queue_.begin(), queue_.end());
  }
  touched_.clear();
}

MergeLearner::Entry MergeLearner::pop() {
  std::pop_heap(queue_.begin(), queue_.end());
  Entry top = std::move(queue_.back());
  queue_.pop_back();
  return top;
}

void MergeLearner::merge_in_word(uint32_t index, int32_t left, int32_t right, int32_t merged) {
  Word& word = words_[index];
  int32_t* symbol = symbols_.data() + word.begin;
  uint32_t out = 0;
  for (uint32_t i = 0; i < word.length; ++i, ++out) {
    if (symbol[i] != left || i + 1 == word.length || symbol[i + 1] != right) {
      symbol[out] = symbol[i];
      continue;
    }
    ++i;
    symbol[out] = merged;
    if (out > 0) {
      change(symbol[out - 1], left, -word.count, index);
      change(symbol[out - 1], merged, word.count, index);
    }
    if (i + 1 < word.length) {
      change(right, symbol[i + 1], -word.count, index);
      change(merged, symbol[i + 1], word.count, index);
    }
  }
  word.length = out;
}

TrainedVocabulary MergeLearner::learn() {
  std::unordered_map<uint64_t, size_t> last_rank;  // a pair that merges twice keeps its later rank
  std::vector<uint64_t> merges;
  const auto wanted = static_cast<size_t>(options_.vocab_size);
  while (vocabulary_.tokens.size() < wanted && !queue_.empty()) {
    Entry top = pop();
    if (top.count != pairs_[top.number].count) {
      top.count = pairs_[top.number].count;
      queue_.push_back(std::move(top));
      std::push_heap(queue_.begin(), queue_.end());
      continue;
    }
    if (top.count < 1 || top.count < options_.min_frequency) break;
    const auto left = static_cast<int32_t>(top.pair >> 32),
               right = static_cast<int32_t>(top.pair & UINT32_MAX);
    const int32_t merged = add_token(vocabulary_.tokens[left] + vocabulary_.tokens[right]);
    last_rank[top.pair] = merges.size();
    merges.push_back(top.pair);
    for (const uint32_t word : top.words) merge_in_word(word, left, right, merged);
    fill_queue();
    if (options_.progress && merges.size() % kProgressEvery == 0)
      options_.progress(static_cast<double>(vocabulary_.tokens.size()) / static_cast<double>(wanted),
                        "merge");
  }
  for (size_t rank = 0; rank < merges.size(); ++rank)
    if (last_rank[merges[rank]] == rank)
      vocabulary_.merges.emplace_back(static_cast<int32_t>(merges[rank] >> 32),
                                      static_cast<int32_t>(merges[rank] & UINT32_MAX));
  return std::move(vocabulary_);
}

}  // namespace

TrainedVocabulary learn_merges(const WordCounts& words, const BpeTrainOptions& options) {
  return MergeLearner(words, options).learn();
}

std::string train_bpe(const std::vector<InputFile>& files, const BpeTrainOptions& options) {
  const WordCounts words = count_words(files, options);
  if (words.empty())
    fail(ExitCode::kUnusable, "[tokenizer] the {} files contain no text to train on", files.size());
  check_size(words, options);
  return format_tokenizer_json(learn_merges(words, options));
}

}  // namespace tycho
