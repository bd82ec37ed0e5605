// Learns a BPE vocabulary from counted words.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/data/sources/input_files.h"
#include "trainer/data/tokenizer/bpe.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_json.h"

namespace tycho {

using WordCounts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

/// Counts the pieces into which GPT-2's pattern splits the files, with `options.threads` threads.
WordCounts count_words(const std::vector<InputFile>& files, const BpeTrainOptions& options);

/// Merges the most frequent pair of tokens, and among equals the pair of smaller ids, until the vocabulary is
/// full or no pair is frequent enough. Ids: special tokens, the 256 bytes in the order of their characters,
/// merges.
TrainedVocabulary learn_merges(const WordCounts& words, const BpeTrainOptions& options);

}  // namespace tycho
