// Texts that are hard to tokenise, the same as tests/golden/tokenizer_styles.py makes, and checksums of what
// a tokenizer makes of them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho::testing {

inline std::string utf8_of(uint32_t code) {
  const auto byte = [](uint32_t bits) { return static_cast<char>(bits); };
  const auto rest = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), rest(0)};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), rest(6), rest(0)};
  return {byte(0xF0 | code >> 18), rest(12), rest(6), rest(0)};
}

class HostileTexts {
 public:
  /// `tables`: hostile.json. `words`: more of them, of one tokenizer.
  HostileTexts(const SortedJson& tables, const SortedJson& words)
      : plain_(tables.at("plain")), words_(tables.at("words")), ranges_(tables.at("ranges")) {
    for (const std::string word : words) words_.push_back(word);
  }

  std::string next() {
    std::string text;
    const bool spaced = below(10) < 3;
    for (uint64_t left = below(30); left > 0; --left) {
      const uint64_t kind = below(20);
      if (kind < 8) {
        text += one_of(plain_);
      } else if (kind < 13) {
        text += one_of(words_);
      } else if (kind < 14) {
        const std::string& part = one_of(plain_);
        for (uint64_t times = 2 + below(38); times > 0; --times) text += part;
      } else {
        const auto& [low, high] = one_of(ranges_);
        text += utf8_of(low + static_cast<uint32_t>(below(high - low)));
      }
      if (spaced) text += ' ';
    }
    return text;
  }

 private:
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  /// SplitMix64.
  uint64_t below(uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return (mixed ^ mixed >> 31) % bound;
  }

  std::vector<std::string> plain_, words_;
  std::vector<std::pair<uint32_t, uint32_t>> ranges_;
  uint64_t state_ = 0;
};

/// Compares the ids and the texts that they decode to, of 10,000 texts, with the checksums `crc` of them.
/// `words`: as for HostileTexts. `decode` gives the text of ids.
inline void expect_digests(const SortedJson& crc, const SortedJson& words, const Tokenizer& tokenizer,
                           const std::function<std::string(const std::vector<int32_t>&)>& decode) {
  const auto tables = SortedJson::parse(read_file(golden("tokenizer_styles/hostile.json")));
  const auto block = tables.at("block").get<int>();
  ASSERT_GE(crc.size() * static_cast<size_t>(block), 10000u);
  HostileTexts texts(tables, words);
  int first = 0;
  for (const uint32_t wanted : crc) {
    std::vector<uint32_t> numbers;
    for (int i = 0; i < block; ++i) {
      const std::vector<int32_t> ids = tokenizer.encode(texts.next());
      const std::string decoded = decode(ids);
      numbers.push_back(static_cast<uint32_t>(ids.size()));
      numbers.insert(numbers.end(), ids.begin(), ids.end());
      numbers.push_back(static_cast<uint32_t>(decoded.size()));
      for (const char c : decoded) numbers.push_back(static_cast<uint8_t>(c));
    }
    EXPECT_EQ(crc32_of(numbers), wanted)
        << "of texts " << first << " to " << first + block - 1
        << "; `python tests/golden/tokenizer_styles.py check` shows texts that differ";
    first += block;
  }
}

/// Compares as expect_digests() does with what `style` of hostile.json records.
inline void expect_recorded_digests(const std::string& style, const Tokenizer& tokenizer,
                                    const std::function<std::string(const std::vector<int32_t>&)>& decode) {
  const auto tables = SortedJson::parse(read_file(golden("tokenizer_styles/hostile.json")));
  const auto& recorded = tables.at("styles").at(style);
  expect_digests(recorded.at("crc"), recorded.at("words"), tokenizer, decode);
}

}  // namespace tycho::testing
