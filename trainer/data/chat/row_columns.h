// Which columns of a table make rows of finetuning data, and what their values say.
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

/// A value of a row, with the encoding of its column.
struct RowCell {
  std::string_view encoding;
  std::string value;
};

/// Immutable; used by several threads at once.
class RowColumns {
 public:
  /// Chooses of a table's columns, which have names and encodings of MDS: "turns", "input_ids" and "labels",
  /// "messages", or "prompt" and "response" or "completion". Throws Error (kUnusable) that names `place` when
  /// there are none of these, or they have encodings that rows cannot have.
  RowColumns(const std::vector<MdsColumn>& columns, const std::string& place);

  /// The chosen ones, in the order of cells.
  const std::vector<std::string>& names() const { return names_; }
  /// Of a row with values for all columns of the table.
  std::vector<RowCell> cells(const std::vector<std::string_view>& values) const;
  /// Of a row with values for the chosen ones.
  std::vector<RowCell> cells(std::vector<std::string> values) const;

  /// Whether rows are tokens already.
  bool has_tokens() const { return names_[0] == "turns" || names_[0] == "input_ids"; }
  /// The conversation, or the prompt and response; not of tokens. Throws as parse_chat_row.
  ChatRow row(const std::vector<RowCell>& cells, const std::string& place) const;
  /// Tokens of a row. Throws Error (kUnusable) for tokens outside the vocabulary, and as row and the encoder.
  ChatExample encode(const std::vector<RowCell>& cells, const ChatEncoder& encoder, int64_t vocab_size,
                     const std::string& place) const;

 private:
  void check_encodings(const std::string& place) const;

  std::vector<std::string> names_, encodings_;
  std::vector<size_t> at_;  // in the table
};

}  // namespace tycho
