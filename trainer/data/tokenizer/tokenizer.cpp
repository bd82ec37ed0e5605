// Tells the kinds of files apart.
#include "trainer/data/tokenizer/tokenizer.h"

#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/tokenizer/bpe_tokenizer.h"
#include "trainer/data/tokenizer/post_processor.h"
#include "trainer/data/tokenizer/sentencepiece.h"
#include "trainer/data/tokenizer/tokenizer_json.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

TokenizerParts parse(std::string_view bytes, const std::string& place) {
  return is_sentencepiece(bytes) ? parse_sentencepiece(bytes, place) : parse_tokenizer_json(bytes, place);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    fail(ExitCode::kUnusable, "[tokenizer] {} is a folder: name the file, {}/{}", path, path, kTokenizerFile);
  if (const auto size = fs::file_size(path, error); !error && size > kMaxTokenizerBytes)
    fail(ExitCode::kUnusable, "[tokenizer] {} has {} bytes: wanted a tokenizer of at most {} MiB", path, size,
         kMaxTokenizerBytes >> 20);
  return tokenizer_from_text(read_file(path), path, tokenizer_config_beside(path));
}

std::unique_ptr<Tokenizer> tokenizer_from_text(std::string_view text, const std::string& place,
                                               std::string_view config) {
  TokenizerParts parts = parse(text, place);
  if (!config.empty())
    read_tokenizer_config(config, fs::path(place).replace_filename(kTokenizerConfigFile), parts);
  return std::make_unique<BpeTokenizer>(std::move(parts));
}

std::string tokenizer_config_beside(const std::string& path) {
  const std::string config = fs::path(path).replace_filename(kTokenizerConfigFile);
  const std::string name = fs::path(path).filename();
  std::error_code error;
  const bool belongs = name == kTokenizerFile || name == kSentencePieceFile;
  return belongs && fs::exists(config, error) ? read_file(config) : "";
}

const char* tokenizer_file_name(std::string_view bytes) {
  return is_sentencepiece(bytes) ? kSentencePieceFile : kTokenizerFile;
}

}  // namespace tycho
