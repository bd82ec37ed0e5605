// Rows of finetuning data out of files of any kind, a block at a time, for several threads to work on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/data/chat/chat_example.h"
#include "trainer/data/chat/chat_row.h"
#include "trainer/data/chat/row_table.h"
#include "trainer/data/text/input_files.h"

namespace tycho {

/// Some rows that follow each other. Immutable; used by several threads at once. Errors of rows that cannot
/// be used are kUnusable and name file and line, or row.
class ChatBlock {
 public:
  virtual ~ChatBlock() = default;
  virtual size_t size() const = 0;
  /// The conversation, or the prompt and response; not of tokens.
  virtual ChatRow row(size_t i) const = 0;
  /// Tokens of a row. Tokens outside [0, vocab_size) are an Error.
  virtual ChatExample encode(size_t i, const ChatEncoder& encoder, int64_t vocab_size) const = 0;
  virtual int64_t text_bytes(size_t i) const = 0;
};

/// Owned by one thread. Errors are kUnusable and name the file.
class ChatBlocks {
 public:
  virtual ~ChatBlocks() = default;
  /// The next block, which must not outlive this; nullptr at the end. A block may be empty.
  virtual std::unique_ptr<ChatBlock> next() = 0;
  /// Bytes of the file that were read for the last block, for progress.
  virtual int64_t file_bytes() const = 0;
  /// Whether rows are tokens already.
  virtual bool has_tokens() const = 0;
};

/// Rows of a file, or of a data set's folder. Throws as RowTable.
std::unique_ptr<ChatBlocks> open_chat_blocks(const InputFile& file);
/// Rows of a table.
std::unique_ptr<ChatBlocks> open_chat_blocks(std::unique_ptr<RowTable> table);

}  // namespace tycho
