// The Lua object `data`.
#include <algorithm>

#include "bindings/run/session_objects.h"

namespace tycho {
namespace {

constexpr int64_t kMaxPeek = 4096, kMaxRows = 1 << 20, kMaxSkip = 1'000'000'000;

/// Pushes lists of tokens or labels of the next sequences.
int push_peeked(Call& call, std::vector<int32_t> PeekedSequence::*part) {
  const auto sequences = session(call).peek(call.integer(1, 1));
  lua_createtable(call.L, static_cast<int>(sequences.size()), 0);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const std::vector<int32_t>& ids = sequences[i].*part;
    lua_createtable(call.L, static_cast<int>(ids.size()), 0);
    for (size_t j = 0; j < ids.size(); ++j) {
      lua_pushnumber(call.L, ids[j]);
      lua_rawseti(call.L, -2, static_cast<int>(j) + 1);
    }
    lua_rawseti(call.L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int peek(Call& call) { return push_peeked(call, &PeekedSequence::tokens); }
int labels(Call& call) { return push_peeked(call, &PeekedSequence::labels); }

/// Returns a token's text in quotes, so that spaces and line ends are visible.
std::string piece(Call& call, int32_t id) {
  if (!session(call).facts().has_tokenizer) return "";
  return Json(session(call).decode({id})).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string label_text(int32_t label) { return label < 0 ? "-" : std::to_string(label); }

int show(Call& call) {
  const auto sequences = session(call).peek(call.integer(1, 1));
  const auto most = static_cast<size_t>(call.integer(2, 32));
  std::string text;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const PeekedSequence& one = sequences[i];
    text += fmt::format("sequence {}, {} tokens\n  {:>6}  {:>8}  {:>8}  {}\n", i + 1, one.tokens.size(), "at",
                        "token", "label", "text");
    for (size_t j = 0; j < std::min(most, one.tokens.size()); ++j)
      text += fmt::format("  {:>6}  {:>8}  {:>8}  {}\n", j + 1, one.tokens[j], label_text(one.labels[j]),
                          piece(call, one.tokens[j]));
    if (one.tokens.size() > most) text += fmt::format("  ... {} more\n", one.tokens.size() - most);
  }
  return call.push(text);
}

int decode(Call& call) {
  const auto ids = call.tokens(1);
  if (!ids) throw ScriptError("E_ARGUMENT", "data:decode: ids expects a list of token ids, got text");
  return call.push(session(call).decode(*ids));
}

int skip(Call& call) {
  session(call).command(make_command("skip_batches", Json::array({call.integer(1)}), nullptr, "repl"));
  return 0;
}

int encode(Call& call) { return call.push(Json(session(call).encode(call.text(1)))); }

int wait_ms(Call& call) {
  const auto last = session(call).state().last;
  return last ? call.push(last->data_wait_s * 1e3) : call.push_nil();
}

/// Returns the path of the data, whatever its kind.
std::string place_of(const Json& data) {
  std::string streams;
  for (const Json& stream : data.value("streams", Json::array()))
    streams += (streams.empty() ? "" : ", ") + stream.at("name").get<std::string>();
  return streams.empty() ? data.value("local_dir", data.value("path", "")) : "streams " + streams;
}

int data_text(Call& call) {
  const TrainState train = session(call).state().train;
  return call.push(fmt::format("data {}  epoch {}  {} samples seen of {} each epoch",
                               place_of(session(call).facts().recipe.at("train_data")), train.data.epoch,
                               train.samples, session(call).facts().run.num_samples));
}

}  // namespace

const Class& data_class() {
  using Kind = Arg::Kind;
  static const Class object = {
      .name = "data",
      .doc = "The training data.",
      .fields = {{"epoch", "integer", "From 0.",
                  [](Call& c) { return c.push(session(c).state().train.data.epoch); }},
                 {"samples_seen", "integer", "Sequences trained on.",
                  [](Call& c) { return c.push(session(c).state().train.samples); }},
                 {"samples_per_epoch", "integer", "Sequences in the data set.",
                  [](Call& c) { return c.push(session(c).facts().run.num_samples); }},
                 {"wait_ms", "number?", "How long the newest step waited for its batch.", wait_ms}},
      .methods =
          {{"peek",
            "integer[][]",
            "Token ids of the next sequences, without consuming them.",
            {{"n", Kind::kInteger, "Number of them; default 1.", true, 1, kMaxPeek}},
            peek},
           {"labels",
            "integer[][]",
            "Target of each token of the next sequences; negative where there is none.",
            {{"n", Kind::kInteger, "Number of them; default 1.", true, 1, kMaxPeek}},
            labels},
           {"show",
            "string",
            "The next sequences in rows: tokens, labels (- where there is none) and their text.",
            {{"n", Kind::kInteger, "Number of them; default 1.", true, 1, kMaxPeek},
             {"rows", Kind::kInteger, "Tokens of each; default 32.", true, 1, kMaxRows}},
            show},
           {"decode",
            "string",
            "The text of token ids.",
            {{"ids", Kind::kTokens, "A list of token ids.", false}},
            decode},
           {"skip",
            "",
            "Skips the next batches from the next step boundary on, like cmd.skip_batches.",
            {{"n", Kind::kInteger, "How many.", false, 1, kMaxSkip}},
            skip,
            true},
           {"encode", "integer[]", "The token ids of a text.", {{"text", Kind::kText, "", false}}, encode}},
      .text = data_text};
  return object;
}

}  // namespace tycho
