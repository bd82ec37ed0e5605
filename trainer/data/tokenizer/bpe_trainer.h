// Learning a BPE vocabulary from counted words.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/data/text/input_files.h"
#include "trainer/data/tokenizer/bpe.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_json.h"

namespace tycho {

using WordCounts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

/// Counts the pieces that GPT-2's pattern cuts the files into, with `options.threads` threads.
WordCounts count_words(const std::vector<InputFile>& files, const BpeTrainOptions& options);

/// Merges the most frequent pair of tokens, the one of smaller ids among equals, until the vocabulary is full
/// or no pair is frequent enough. Ids: special tokens, the 256 bytes in the order of their characters,
/// merges.
TrainedVocabulary learn_merges(const WordCounts& words, const BpeTrainOptions& options);

}  // namespace tycho
