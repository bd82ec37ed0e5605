// One conversion per stored type, with the check of the range in the same loop.
#include "trainer/data/token_dataset.h"

#include <cstring>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {

TokenDataset::TokenDataset(const std::string& dir, int64_t seq_len, int64_t vocab_size)
    : reader_(read_mds_index(dir)),
      column_(reader_.column("tokens")),
      seq_len_(seq_len),
      vocab_size_(vocab_size) {
  encoding_ = reader_.index().shards[0].columns[column_].encoding;
  if (encoding_ != "bytes" && !encoding_.starts_with("ndarray"))
    fail(ExitCode::kUnusable, "[data] column \"tokens\" of {} has the encoding {}, wanted ndarray:int32", dir,
         encoding_);
  std::vector<int32_t> first(static_cast<size_t>(seq_len));
  read(0, first);
}

template <class T>
void TokenDataset::copy_tokens(int64_t sample, const char* elements, std::span<int32_t> tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    T token;
    std::memcpy(&token, elements + i * sizeof(T), sizeof(T));
    if (std::cmp_less(token, 0) || std::cmp_greater_equal(token, vocab_size_)) {
      fail(ExitCode::kUnusable,
           "[data] token {} at position {} of {} is outside the model's vocabulary of {}; was the data made "
           "with another "
           "tokenizer?",
           token, i, reader_.name_of(sample), vocab_size_);
    }
    tokens[i] = static_cast<int32_t>(token);
  }
}

void TokenDataset::read(int64_t sample, std::span<int32_t> tokens) {
  const std::string_view value = reader_.read(sample)[column_];
  MdsArrayView array{"int64", value.data(), static_cast<int64_t>(value.size() / sizeof(int64_t))};
  if (encoding_ != "bytes") array = decode_mds_array(encoding_, value, "[data] " + reader_.name_of(sample));
  if (array.count < seq_len_) {
    fail(ExitCode::kUnusable,
         "[data] {} has {} tokens, the recipe's sequence length is {}; set seq_len = {}, or convert the data "
         "again with "
         "--concat-tokens {}",
         reader_.name_of(sample), array.count, seq_len_, array.count, seq_len_);
  }
  if (array.dtype == "int32") return copy_tokens<int32_t>(sample, array.elements, tokens);
  if (array.dtype == "uint16") return copy_tokens<uint16_t>(sample, array.elements, tokens);
  if (array.dtype == "uint32") return copy_tokens<uint32_t>(sample, array.elements, tokens);
  if (array.dtype == "int64") return copy_tokens<int64_t>(sample, array.elements, tokens);
  fail(ExitCode::kUnusable, "[data] {} holds {} values; tokens must be int32, int64, uint16 or uint32",
       reader_.name_of(sample), array.dtype);
}

}  // namespace tycho
