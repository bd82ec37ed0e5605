// Rows of finetuning data from files of any kind, read in blocks that several threads work on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/data/chat/chat_example.h"
#include "trainer/data/chat/chat_row.h"
#include "trainer/data/chat/row_table.h"
#include "trainer/data/sources/input_files.h"

namespace tycho {

/// Some consecutive rows. Immutable; used by several threads at once. Errors of rows that cannot be used are
/// kUnusable and name file and line, or row.
class ChatBlock {
 public:
  virtual ~ChatBlock() = default;
  virtual size_t size() const = 0;
  /// Returns the conversation, or the prompt and response. Not for blocks of tokens.
  virtual ChatRow row(size_t i) const = 0;
  /// Returns the tokens of a row. Throws Error for tokens outside [0, vocab_size).
  virtual ChatExample encode(size_t i, const ChatEncoder& encoder, int64_t vocab_size) const = 0;
  virtual int64_t text_bytes(size_t i) const = 0;
};

/// Owned by one thread. Errors are kUnusable and name the file.
class ChatBlocks {
 public:
  virtual ~ChatBlocks() = default;
  /// Returns the next block, which must not outlive this object; nullptr at the end. A block may be empty.
  virtual std::unique_ptr<ChatBlock> next() = 0;
  /// Bytes of the file that were read for the last block, for progress.
  virtual int64_t file_bytes() const = 0;
  /// True if rows are stored as tokens.
  virtual bool has_tokens() const = 0;
};

/// Opens the rows of a file or of a data set's folder. `weights`: the field of the rows' weights, of JSONL;
/// "" for none. Throws as RowTable does, and Error (kUnusable) for weights of other files.
/// A file with a lender is on this machine until the blocks are destroyed.
std::unique_ptr<ChatBlocks> open_chat_blocks(const InputFile& file, const std::string& weights = "");
/// Groups the rows of a table into blocks.
std::unique_ptr<ChatBlocks> open_chat_blocks(std::unique_ptr<RowTable> table);

}  // namespace tycho
