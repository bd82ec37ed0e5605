// Values of MDS are bytes in an encoding; lists of tokens are arrays, or JSON.
#include "trainer/data/chat/row_columns.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/mds_value.h"

namespace tycho {
namespace {

constexpr int32_t kNotLearnt = -100;  // the label of transformers for tokens that are not learnt

/// Tokens of a row, or their labels.
struct Ids {
  int64_t vocab_size;
  bool are_labels = false;
  bool has(int64_t id) const { return (id >= 0 && id < vocab_size) || (are_labels && id == kNotLearnt); }
};

template <class T>
void append_tokens(const MdsArray& array, const Ids& ids, const std::string& place,
                   std::vector<int32_t>& tokens) {
  for (int64_t i = 0; i < array.count; ++i) {
    T token;
    std::memcpy(&token, array.elements + i * static_cast<int64_t>(sizeof token), sizeof token);
    if (!ids.has(static_cast<int64_t>(token)))
      fail(ExitCode::kUnusable, "[{}] token {} is outside the model's vocabulary of {}", place, token,
           ids.vocab_size);
    tokens.push_back(static_cast<int32_t>(token));
  }
}

std::vector<int32_t> tokens_of_list(const Json& list, const Ids& ids, const std::string& place) {
  if (!list.is_array())
    fail(ExitCode::kUnusable, "[{}] expected a list of tokens, is {}", place, list.type_name());
  std::vector<int32_t> tokens;
  for (const Json& token : list) {
    if (!token.is_number_integer() || !ids.has(token.get<int64_t>()))
      fail(ExitCode::kUnusable, "[{}] token {} is outside the model's vocabulary of {}", place, token.dump(),
           ids.vocab_size);
    tokens.push_back(token.get<int32_t>());
  }
  return tokens;
}

std::vector<int32_t> tokens_of_cell(const RowCell& cell, const Ids& ids, const std::string& place) {
  if (cell.encoding == "json") return tokens_of_list(parse_json(cell.value, place), ids, place);
  MdsArray array{"int64", {}, cell.value.data(), static_cast<int64_t>(cell.value.size() / sizeof(int64_t))};
  if (cell.encoding != "bytes") array = read_mds_array(cell.encoding, cell.value, "[" + place + "]");
  std::vector<int32_t> tokens;
  if (array.dtype == "int64") {
    append_tokens<int64_t>(array, ids, place, tokens);
  } else if (array.dtype == "int32") {
    append_tokens<int32_t>(array, ids, place, tokens);
  } else if (array.dtype == "uint32") {
    append_tokens<uint32_t>(array, ids, place, tokens);
  } else if (array.dtype == "uint16") {
    append_tokens<uint16_t>(array, ids, place, tokens);
  } else {
    fail(ExitCode::kUnusable, "[{}] holds {} values: tokens must be int32, int64, uint16 or uint32", place,
         array.dtype);
  }
  return tokens;
}

std::vector<int32_t> tokens_of_turn(const Json& turn, const char* key, int64_t vocab_size,
                                    const std::string& place) {
  if (!turn.is_object() || !turn.contains(key) || !turn.at(key).is_array())
    fail(ExitCode::kUnusable, "[{}] every turn must have lists of tokens \"input_ids\" and \"labels\"",
         place);
  return tokens_of_list(turn.at(key), {vocab_size}, place);
}

/// Checks that labels are those of transformers: one for each token, which is the token or -100.
void check_labels(const std::vector<int32_t>& tokens, const std::vector<int32_t>& labels,
                  const std::string& place) {
  if (tokens.size() != labels.size())
    fail(ExitCode::kUnusable, "[{}] expected a label for each of {} tokens, got {}: leave the row out", place,
         tokens.size(), labels.size());
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != kNotLearnt && labels[i] != tokens[i])
      fail(
          ExitCode::kUnusable,
          "[{}] expected the token {} or -100 as label {}, got {}: labels are not shifted, leave the row out",
          place, tokens[i], i, labels[i]);
}

void check_turns(const std::vector<TokenTurn>& turns, const std::string& place) {
  const bool any_empty = std::any_of(turns.begin(), turns.end(), [](const TokenTurn& turn) {
    return turn.prompt.empty() || turn.response.empty();
  });
  if (turns.empty() || any_empty)
    fail(ExitCode::kUnusable, "[{}] a prompt or a response has no tokens: leave the sample out", place);
}

}  // namespace

RowColumns::RowColumns(const std::vector<MdsColumn>& columns, const std::string& place) {
  for (const auto& names : {std::vector<std::string>{"turns"},
                            {"input_ids", "labels"},
                            {"messages"},
                            {"prompt", "response"},
                            {"prompt", "completion"}}) {
    names_ = names;
    at_.clear();
    encodings_.clear();
    for (const std::string& name : names)
      for (size_t i = 0; i < columns.size(); ++i)
        if (columns[i].name == name) {
          at_.push_back(i);
          encodings_.push_back(columns[i].encoding);
        }
    if (at_.size() == names.size()) {
      check_encodings(place);
      return;
    }
  }
  fail(ExitCode::kUnusable,
       "[data] {} has no columns \"messages\", \"prompt\" and \"response\", \"turns\", or \"input_ids\" and "
       "\"labels\": for rows of tokens to pretrain on, use t.data.mds",
       place);
}

std::vector<RowCell> RowColumns::cells(const std::vector<std::string_view>& values) const {
  std::vector<RowCell> cells;
  for (size_t i = 0; i < at_.size(); ++i) cells.push_back({encodings_[i], std::string(values[at_[i]])});
  return cells;
}

std::vector<RowCell> RowColumns::cells(std::vector<std::string> values) const {
  std::vector<RowCell> cells;
  for (size_t i = 0; i < values.size(); ++i) cells.push_back({encodings_[i], std::move(values[i])});
  return cells;
}

ChatRow RowColumns::row(const std::vector<RowCell>& cells, const std::string& place) const {
  if (names_[0] == "messages") return parse_chat_row("{\"messages\":" + cells[0].value + "}", place);
  Json row;
  for (size_t i = 0; i < cells.size(); ++i) {
    check_mds_value(cells[i].encoding, cells[i].value, "[" + place + "]");
    row[names_[i]] = cells[i].value;
  }
  return parse_chat_row(row.dump(), place);
}

ChatExample RowColumns::encode(const std::vector<RowCell>& cells, const ChatEncoder& encoder,
                               int64_t vocab_size, const std::string& place) const {
  if (!has_tokens()) return encoder.encode(row(cells, place));
  std::vector<TokenTurn> turns;
  if (names_[0] == "input_ids") {
    std::vector<int32_t> tokens = tokens_of_cell(cells[0], {vocab_size}, place);
    std::vector<int32_t> labels =
        tokens_of_cell(cells[1], {.vocab_size = vocab_size, .are_labels = true}, place);
    if (std::ranges::find(labels, kNotLearnt) != labels.end()) {
      check_labels(tokens, labels, place);
      return encoder.labelled(std::move(tokens), labels);
    }
    turns.push_back({std::move(tokens), std::move(labels)});
  } else {
    const Json list = parse_json(cells[0].value, place);
    if (!list.is_array()) fail(ExitCode::kUnusable, "[{}] \"turns\" must be a list", place);
    for (const Json& turn : list)
      turns.push_back({tokens_of_turn(turn, "input_ids", vocab_size, place),
                       tokens_of_turn(turn, "labels", vocab_size, place)});
  }
  check_turns(turns, place);
  return encoder.join(std::move(turns));
}

void RowColumns::check_encodings(const std::string& place) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    const std::string& encoding = encodings_[i];
    const bool fits = names_[0] == "input_ids"
                          ? encoding == "bytes" || encoding == "json" || encoding.starts_with("ndarray")
                      : names_[0] == "prompt" ? encoding == "str"
                                              : encoding == "json" || encoding == "str";
    if (!fits)
      fail(ExitCode::kUnusable,
           "[data] column \"{}\" of {} has the encoding {}, which rows cannot have: convert it", names_[i],
           place, encoding);
  }
}

}  // namespace tycho
