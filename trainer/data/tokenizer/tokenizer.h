// Encodes text as tokens and decodes them: BPE described by Hugging Face's tokenizer.json or a
// tokenizer.model of SentencePiece.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/sources/input_files.h"

namespace tycho {

/// Name of the file in checkpoints and in folders of Hugging Face.
inline constexpr char kTokenizerFile[] = "tokenizer.json";

/// Summary of a tokenizer, for users.
struct TokenizerInfo {
  std::string format;  // "tokenizer.json" or "tokenizer.model"
  std::string kind;    // "byte-level BPE", "BPE with byte fallback"
  int64_t num_tokens = 0, num_merges = 0;
  std::vector<std::string> normalizers, pre_tokenizers;  // described, in order
  /// Tokens named by tokenizer_config.json or the model file; "" where there is no name.
  std::string bos, eos, pad, unknown;
  /// Tokens that only files next to the tokenizer name. Their ids follow all others, as in transformers.
  std::vector<std::string> added_beside;
};

/// Immutable after loading; every method may be called from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Returns the ids of a text. Special tokens in it are recognised as Hugging Face's encode does (for a
  /// tokenizer.model, as SentencePiece does: only its user-defined pieces); nothing is added around it.
  /// Throws Error (kUnusable) when the vocabulary has no token for a part of it.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// Returns the ids that Hugging Face's encode puts before and after a text by itself (post_processor, or
  /// tokenizer_config.json for the classes that use it): none, or <|begin_of_text|>.
  virtual std::vector<int32_t> text_begin() const { return {}; }
  virtual std::vector<int32_t> text_end() const { return {}; }
  /// Returns the bytes of all tokens, special ones included. decode(encode(text)) is the normalised text.
  /// Throws Error for ids outside the vocabulary.
  virtual std::string decode(const std::vector<int32_t>& ids) const = 0;
  /// Returns the bytes of one token, for streaming (may be part of a UTF-8 character).
  virtual std::string token_bytes(int32_t id) const = 0;
  /// Returns the bytes of the first token of a text, without the space that encode puts before every text.
  virtual std::string first_token_bytes(int32_t id) const { return token_bytes(id); }
  virtual bool is_special(int32_t id) const = 0;
  /// Returns the id of a token by its text, or -1.
  virtual int32_t find(std::string_view token) const = 0;
  /// One more than the largest id.
  virtual int32_t size() const = 0;
  /// True if a text may be cut between an ASCII letter or digit and the space or newline after it, and its
  /// parts encoded alone, without changing the ids.
  virtual bool splits_at_words() const { return false; }
  /// XXH3-128 of the tokenizer's file.
  virtual const std::string& hash() const = 0;
  virtual const TokenizerInfo& info() const = 0;
};

/// Names of the files next to a tokenizer that say how Hugging Face's classes use it.
inline constexpr char kTokenizerConfigFile[] = "tokenizer_config.json";
inline constexpr char kSpecialTokensMapFile[] = "special_tokens_map.json";
inline constexpr char kAddedTokensFile[] = "added_tokens.json";

/// Contents of the files that exist, by name.
using TokenizerFilesBeside = std::map<std::string, std::string>;

/// Largest file that is read.
inline constexpr size_t kMaxTokenizerBytes = size_t{256} << 20;

/// Name of the same tokenizer as SentencePiece stores it, next to kTokenizerFile or alone.
inline constexpr char kSentencePieceFile[] = "tokenizer.model";

/// Reads a tokenizer as it is stored with data and checkpoints: the file's bytes, or, for a vocab.json with
/// merges.txt next to it, the tokenizer.json that they make. Throws Error (kUnusable).
std::string read_tokenizer_file(const std::string& path);
/// Reads a tokenizer.json, tokenizer.model or vocab.json, and the files that transformers reads next to it.
/// Throws Error (kUnusable) that names what is not supported.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);
/// Makes a tokenizer from the file's bytes. `place` names it in messages, `beside` holds the files that
/// belong to it.
std::unique_ptr<Tokenizer> tokenizer_from_text(std::string_view text, const std::string& place,
                                               const TokenizerFilesBeside& beside = {});
/// Reads the files that load_tokenizer reads next to `path`.
TokenizerFilesBeside read_files_beside_tokenizer(const std::string& path);
/// Picks the files that belong to a tokenizer from files by name.
TokenizerFilesBeside files_beside_tokenizer(const std::map<std::string, std::string>& files);
/// Returns the name under which to store a tokenizer with these bytes: kTokenizerFile or kSentencePieceFile.
const char* tokenizer_file_name(std::string_view bytes);

/// Returns the name of the tokenizer file that a checkpoint has; "" if there is none.
template <class Checkpoint>
std::string kept_tokenizer(const Checkpoint& checkpoint) {
  for (const char* name : {kTokenizerFile, kSentencePieceFile})
    if (checkpoint.has_file(name)) return name;
  return "";
}

/// Opens the tokenizer that a checkpoint has; nullptr if there is none.
template <class Checkpoint>
std::unique_ptr<Tokenizer> open_kept_tokenizer(const Checkpoint& checkpoint) {
  const std::string kept = kept_tokenizer(checkpoint);
  if (kept.empty()) return nullptr;
  TokenizerFilesBeside beside;
  for (const char* name : {kTokenizerConfigFile, kSpecialTokensMapFile, kAddedTokensFile})
    if (checkpoint.has_file(name)) beside[name] = checkpoint.read_text_file(name);
  return tokenizer_from_text(checkpoint.read_text_file(kept), checkpoint.info().path + "/" + kept, beside);
}

struct BpeTrainOptions {
  /// Number of tokens: bytes, merges and special tokens. If it is less than 256 and the special tokens, only
  /// bytes that the texts use have tokens, and <unk> stands for the others: a tokenizer of characters for
  /// ASCII.
  int32_t vocab_size = 8192;
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
  int64_t min_frequency = 2;
  /// Lets pieces of text files span lines: runs of newlines and indentation are also learnt, as in Hugging
  /// Face's train_from_iterator over whole files (3 % fewer tokens for C++). Otherwise every line is one
  /// text, as in train(files). A row of the other formats is one text, as in train_from_iterator.
  bool whole_files = false;
  std::string field = "text";  // field of JSONL
  int threads = 0;             // 0: one per core
  /// Receives the reason why a line or row cannot be used, from one thread at a time. Without it such rows
  /// are an Error.
  std::function<void(const std::string& why)> on_bad_row;
  std::function<void(double fraction, const std::string& phase)> progress;
};

/// Trains byte-level BPE with GPT-2's pre-tokenisation on text and JSONL files. Returns the text of
/// tokenizer.json, with the same merges as Hugging Face's BpeTrainer.
std::string train_bpe(const std::vector<InputFile>& files, const BpeTrainOptions& options);

}  // namespace tycho
