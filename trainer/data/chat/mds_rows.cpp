// One thread reads samples, a block at a time; several encode them.
#include "trainer/data/chat/mds_rows.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/encode_lines.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_value.h"
#include "trainer/data/remote/cached_file.h"
#include "trainer/data/remote/cached_index.h"
#include "trainer/data/remote/cached_source.h"

namespace tycho {
namespace {

constexpr int64_t kSamplesAtOnce = 8192;

MdsConfig as_mds(const ChatConfig& config) {
  MdsConfig mds;
  mds.local_dir = config.path;
  mds.remote = config.remote;
  mds.split = "";
  return mds;
}

MakeShardSource source_of_rows(const MdsConfig& mds) {
  if (mds.remote.empty()) return local_source(mds.verify, RawShards::kInMemory);
  return [mds](const MdsIndex& index) { return make_cached_source(index, mds.verify, cache_spec(mds)); };
}

/// A value of a sample, with the encoding of its column.
struct Cell {
  std::string_view encoding;
  std::string value;
};

template <class T>
void append_tokens(const MdsArray& array, int64_t vocab_size, const std::string& place,
                   std::vector<int32_t>& tokens) {
  for (int64_t i = 0; i < array.count; ++i) {
    T token;
    std::memcpy(&token, array.elements + i * static_cast<int64_t>(sizeof token), sizeof token);
    if (std::cmp_less(token, 0) || std::cmp_greater_equal(token, vocab_size))
      fail(ExitCode::kUnusable, "[{}] token {} is outside the model's vocabulary of {}", place, token,
           vocab_size);
    tokens.push_back(static_cast<int32_t>(token));
  }
}

std::vector<int32_t> tokens_of_cell(const Cell& cell, int64_t vocab_size, const std::string& place) {
  MdsArray array{"int64", {}, cell.value.data(), static_cast<int64_t>(cell.value.size() / sizeof(int64_t))};
  if (cell.encoding != "bytes") array = read_mds_array(cell.encoding, cell.value, "[" + place + "]");
  std::vector<int32_t> tokens;
  if (array.dtype == "int64") {
    append_tokens<int64_t>(array, vocab_size, place, tokens);
  } else if (array.dtype == "int32") {
    append_tokens<int32_t>(array, vocab_size, place, tokens);
  } else if (array.dtype == "uint32") {
    append_tokens<uint32_t>(array, vocab_size, place, tokens);
  } else if (array.dtype == "uint16") {
    append_tokens<uint16_t>(array, vocab_size, place, tokens);
  } else {
    fail(ExitCode::kUnusable, "[{}] holds {} values: tokens must be int32, int64, uint16 or uint32", place,
         array.dtype);
  }
  return tokens;
}

std::vector<int32_t> tokens_of_json(const Json& turn, const char* key, int64_t vocab_size,
                                    const std::string& place) {
  std::vector<int32_t> tokens;
  if (!turn.is_object() || !turn.contains(key) || !turn.at(key).is_array())
    fail(ExitCode::kUnusable, "[{}] every turn must have lists of tokens \"input_ids\" and \"labels\"",
         place);
  for (const Json& token : turn.at(key)) {
    if (!token.is_number_integer() || token.get<int64_t>() < 0 || token.get<int64_t>() >= vocab_size)
      fail(ExitCode::kUnusable, "[{}] token {} is outside the model's vocabulary of {}", place, token.dump(),
           vocab_size);
    tokens.push_back(token.get<int32_t>());
  }
  return tokens;
}

void check_turns(const std::vector<TokenTurn>& turns, const std::string& place) {
  const bool any_empty = std::any_of(turns.begin(), turns.end(), [](const TokenTurn& turn) {
    return turn.prompt.empty() || turn.response.empty();
  });
  if (turns.empty() || any_empty)
    fail(ExitCode::kUnusable, "[{}] a prompt or a response has no tokens: leave the sample out", place);
}

/// Which columns make the rows of a data set.
class RowColumns {
 public:
  RowColumns(const MdsReader& reader, const std::string& place) {
    for (const auto& names : {std::vector<std::string>{"turns"},
                              {"input_ids", "labels"},
                              {"messages"},
                              {"prompt", "response"},
                              {"prompt", "completion"}}) {
      const std::vector<MdsColumn>& columns = reader.index().shards[0].columns;
      names_ = names;
      at_.clear();
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
      encodings_.clear();
    }
    fail(
        ExitCode::kUnusable,
        "[data] {} has no columns \"messages\", \"prompt\" and \"response\", \"turns\", or \"input_ids\" and "
        "\"labels\": for rows of tokens to pretrain on, use t.data.mds",
        place);
  }

  std::vector<Cell> cells(const std::vector<std::string_view>& values) const {
    std::vector<Cell> cells;
    for (size_t i = 0; i < at_.size(); ++i) cells.push_back({encodings_[i], std::string(values[at_[i]])});
    return cells;
  }

  ChatExample encode(const std::vector<Cell>& cells, const ChatEncoder& encoder, int64_t vocab_size,
                     const std::string& place) const {
    if (names_[0] == "messages")
      return encoder.encode(parse_chat_row("{\"messages\":" + cells[0].value + "}", place));
    if (names_[0] == "prompt") {
      Json row;
      for (size_t i = 0; i < cells.size(); ++i) {
        check_mds_value(cells[i].encoding, cells[i].value, "[" + place + "]");
        row[names_[i]] = cells[i].value;
      }
      return encoder.encode(parse_chat_row(row.dump(), place));
    }
    std::vector<TokenTurn> turns;
    if (names_[0] == "input_ids") {
      turns.push_back(
          {tokens_of_cell(cells[0], vocab_size, place), tokens_of_cell(cells[1], vocab_size, place)});
    } else {
      const Json list = parse_json(cells[0].value, place);
      if (!list.is_array()) fail(ExitCode::kUnusable, "[{}] \"turns\" must be a list", place);
      for (const Json& turn : list)
        turns.push_back({tokens_of_json(turn, "input_ids", vocab_size, place),
                         tokens_of_json(turn, "labels", vocab_size, place)});
    }
    check_turns(turns, place);
    return encoder.join(std::move(turns));
  }

 private:
  void check_encodings(const std::string& place) const {
    for (size_t i = 0; i < names_.size(); ++i) {
      const std::string& encoding = encodings_[i];
      const bool fits = names_[0] == "input_ids" ? encoding == "bytes" || encoding.starts_with("ndarray")
                        : names_[0] == "prompt"  ? encoding == "str"
                                                 : encoding == "json" || encoding == "str";
      if (!fits)
        fail(ExitCode::kUnusable,
             "[data] column \"{}\" of {} has the encoding {}, which rows cannot have: convert it", names_[i],
             place, encoding);
    }
  }

  std::vector<std::string> names_;
  std::vector<size_t> at_;  // in a sample
  std::vector<std::string> encodings_;
};

}  // namespace

bool has_mds_rows(const ChatConfig& config) {
  std::error_code error;
  if (!config.remote.empty()) return !config.has_remote_jsonl();
  return std::filesystem::exists(config.path + "/index.json", error);
}

void fetch_rows(const ChatConfig& config) {
  if (config.remote.empty()) return;
  if (config.has_remote_jsonl()) return fetch_file(config.remote, config.path, config.remote_hash);
  fetch_indexes({{as_mds(config)}});
}

std::vector<ChatExample> encode_mds_rows(const ChatConfig& config, const ChatEncoder& encoder,
                                         int64_t vocab_size, const std::atomic<int>& stop) {
  const MdsConfig mds = as_mds(config);
  MdsReader reader(read_mds_index(mds.dir()), source_of_rows(mds));
  const RowColumns columns(reader, config.path);
  std::vector<ChatExample> examples;
  const int64_t num_samples = reader.index().num_samples();
  for (int64_t first = 0; first < num_samples; first += kSamplesAtOnce) {
    std::vector<std::vector<Cell>> rows;
    for (int64_t i = first; i < std::min(num_samples, first + kSamplesAtOnce) && stop == 0; ++i)
      rows.push_back(columns.cells(reader.read(i)));
    std::vector<ChatExample> made = encode_rows(
        rows.size(),
        [&](size_t i) {
          return columns.encode(rows[i], encoder, vocab_size,
                                reader.name_of(first + static_cast<int64_t>(i)));
        },
        config.path, stop);
    std::move(made.begin(), made.end(), std::back_inserter(examples));
  }
  return examples;
}

}  // namespace tycho
