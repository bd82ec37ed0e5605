// Distinguishes the kinds of tokenizer files.
#include "trainer/data/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/tokenizer/bpe_tokenizer.h"
#include "trainer/data/tokenizer/local_tokenizer.h"
#include "trainer/data/tokenizer/sentencepiece.h"
#include "trainer/data/tokenizer/tekken.h"
#include "trainer/data/tokenizer/tokenizer_json.h"
#include "trainer/data/tokenizer/tokenizer_use.h"
#include "trainer/data/tokenizer/vocab_files.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// True if the first line is a token in base64 and its rank.
bool is_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const size_t space = line.find(' ');
  if (space == 0 || space == line.npos || space % 4 != 0 || space + 1 == line.size()) return false;
  const auto is_base64 = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/' || c == '=';
  };
  return std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(space), is_base64) &&
         line.find_first_not_of("0123456789\r", space + 1) == line.npos;
}

constexpr std::array kFilesBeside = {kTokenizerConfigFile, kSpecialTokensMapFile, kAddedTokensFile};

}  // namespace

std::string read_tokenizer_file(const std::string& name) {
  const std::string path = local_tokenizer(name);
  std::error_code error;
  if (fs::is_directory(path, error)) fail(ExitCode::kUnusable, "[tokenizer] {}", folder_as_tokenizer(path));
  if (const auto size = fs::file_size(path, error); !error && size > kMaxTokenizerBytes)
    fail(ExitCode::kUnusable, "[tokenizer] {} has {} bytes: expected a tokenizer of at most {} MiB", path,
         size, kMaxTokenizerBytes >> 20);
  if (path.ends_with(kMergesFile))
    fail(ExitCode::kUnusable, "[tokenizer] expected a vocab.json, got {}: name the vocab.json beside it",
         path);
  if (is_tekken_file(path)) return tokenizer_json_of_tekken(read_file(path), path);
  if (!is_vocab_file(path)) return read_file(path);
  const std::string merges = path.substr(0, path.size() - std::strlen(kVocabFile)) + kMergesFile;
  if (!fs::exists(merges, error))
    fail(ExitCode::kUnusable, "[tokenizer] {} has the tokens only: expected its merges in {}", path, merges);
  return tokenizer_json_of_vocab(read_file(path), read_file(merges), read_files_beside_tokenizer(path), path);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& name) {
  const std::string path = local_tokenizer(name);
  return tokenizer_from_text(read_tokenizer_file(path), path, read_files_beside_tokenizer(path));
}

std::unique_ptr<Tokenizer> tokenizer_from_text(std::string_view text, const std::string& place,
                                               const TokenizerFilesBeside& beside) {
  if (is_tiktoken(text))
    fail(
        ExitCode::kUnusable,
        "[tokenizer] {} is a file of tiktoken, as in Meta's own folders of Llama 3: it has neither the "
        "pattern "
        "that cuts texts nor the special tokens. Take the tokenizer.json of the same model in Hugging Face's "
        "form",
        place);
  const TokenizerUse use = read_tokenizer_use(beside, place);
  TokenizerParts parts =
      is_sentencepiece(text) ? parse_sentencepiece(text, place) : parse_tokenizer_json(text, place, use);
  if (is_sentencepiece(text)) {
    check_tokens_of_use(use, parts);
    apply_prefix_space(use, parts);
  }
  apply_names(use, parts);
  return std::make_unique<BpeTokenizer>(std::move(parts));
}

TokenizerFilesBeside read_files_beside_tokenizer(const std::string& tokenizer) {
  TokenizerFilesBeside beside;
  const std::string path = local_tokenizer(tokenizer), name = fs::path(path).filename();
  if (name != kTokenizerFile && name != kSentencePieceFile && name != kVocabFile && !is_tekken_file(path))
    return beside;
  for (const char* other : kFilesBeside) {
    const std::string file = fs::path(path).replace_filename(other);
    std::error_code error;
    if (fs::exists(file, error)) beside[other] = read_file(file);
  }
  return beside;
}

TokenizerFilesBeside files_beside_tokenizer(const std::map<std::string, std::string>& files) {
  TokenizerFilesBeside beside;
  for (const char* name : kFilesBeside)
    if (const auto found = files.find(name); found != files.end()) beside.insert(*found);
  return beside;
}

const char* tokenizer_file_name(std::string_view bytes) {
  return is_sentencepiece(bytes) ? kSentencePieceFile : kTokenizerFile;
}

}  // namespace tycho
