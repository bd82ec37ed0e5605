// The columns of a table that hold rows of finetuning data, and the meaning of their values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/chat/chat_example.h"
#include "trainer/data/chat/chat_row.h"
#include "trainer/data/mds/mds_format.h"

namespace tycho {

/// Value of a row, with the encoding of its column.
struct RowCell {
  std::string_view encoding;
  std::string value;
};

/// Immutable; used by several threads at once.
class RowColumns {
 public:
  /// Chooses among a table's columns, which have names and encodings of MDS: "turns", "input_ids" and
  /// "labels", "messages", or "prompt" and "response" or "completion". Throws Error (kUnusable) that names
  /// `place` when none of these exist, or when their encodings cannot hold rows.
  RowColumns(const std::vector<MdsColumn>& columns, const std::string& place);

  /// Names of the chosen columns, in the order of cells.
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the cells of a row. `values` has all columns of the table.
  std::vector<RowCell> cells(const std::vector<std::string_view>& values) const;
  /// Returns the cells of a row. `values` has only the chosen columns.
  std::vector<RowCell> cells(std::vector<std::string> values) const;

  /// True if rows are stored as tokens.
  bool has_tokens() const { return names_[0] == "turns" || names_[0] == "input_ids"; }
  /// Returns the conversation, or the prompt and response. Not for rows of tokens. Throws as parse_chat_row.
  ChatRow row(const std::vector<RowCell>& cells, const std::string& place) const;
  /// Returns the tokens of a row. Throws Error (kUnusable) for tokens outside the vocabulary, and as row and
  /// the encoder do.
  ChatExample encode(const std::vector<RowCell>& cells, const ChatEncoder& encoder, int64_t vocab_size,
                     const std::string& place) const;

 private:
  void check_encodings(const std::string& place) const;

  std::vector<std::string> names_, encodings_;
  std::vector<size_t> at_;  // index in the table's columns
};

}  // namespace tycho
