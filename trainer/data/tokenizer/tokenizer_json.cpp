// Every field that changes the result of encode is either supported or refused by name.
#include "trainer/data/tokenizer/tokenizer_json.h"

#include <algorithm>

#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/byte_level.h"
#include "trainer/data/tokenizer/normalizer_json.h"
#include "trainer/data/tokenizer/post_processor.h"
#include "trainer/data/tokenizer/pre_tokenizer_json.h"
#include "trainer/data/tokenizer/token_decoder.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"
#include "trainer/data/tokenizer/tokenizer_use.h"

namespace tycho {
namespace {

using Value = TokenizerReader::Value;
using Reader = TokenizerReader;

constexpr size_t kMaxAddedTokens = 100'000;
constexpr size_t kMaxOtherObjects = 10'000;
constexpr int kMaxJsonDepth = 64;
constexpr const char* kSpaceMark = "\u2581";  // by which SentencePiece writes a space

/// True if the byte occurs in UTF-8, so that vocabularies need a token for it.
bool is_in_utf8(int byte) { return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5); }

/// Refuses nesting and numbers of objects beyond any tokenizer's before the text is parsed: a million added
/// tokens would fill the memory before they are counted.
void check_shape(const Reader& reader, std::string_view text) {
  int depth = 0;
  size_t num_objects = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == '{' && ++num_objects > kMaxAddedTokens + kMaxOtherObjects)
      reader.malformed("more than {} objects, and at most {} added tokens are read", num_objects - 1,
                       kMaxAddedTokens);
    if (depth > kMaxJsonDepth) reader.malformed("nested more than {} deep at byte {}", kMaxJsonDepth, i);
  }
}

/// Checks that ids are not so large that tables of them would be mostly empty. Gaps are allowed.
void check_ids(const Reader& reader, const TokenizerParts& parts) {
  const size_t most = 4 * parts.ids.size() + 1024;
  for (const auto& [spelling, id] : parts.ids)
    if (static_cast<size_t>(id) >= most)
      reader.malformed("token \"{}\" has the id {}, too large for {} tokens", spelling, id, parts.ids.size());
}

void add_token(const Reader& reader, TokenizerParts& parts, const std::string& spelling, int32_t id) {
  if (!parts.ids.emplace(spelling, id).second) reader.malformed("token \"{}\" appears twice", spelling);
}

void read_vocabulary(const Reader& reader, const Value& model, TokenizerParts& parts) {
  const Value& vocab = reader.member(model, "vocab", "model");
  if (!vocab.is_object()) reader.malformed("\"vocab\" of model must be an object of tokens and ids");
  parts.ids.reserve(vocab.size());
  for (const auto& [spelling, value] : vocab.items())
    if (!spelling.empty()) add_token(reader, parts, spelling, reader.id(value, spelling));
  const auto unknown = model.find("unk_token");
  if (unknown != model.end() && !unknown->is_null() && *unknown != "") {
    parts.info.unknown = reader.text(model, "unk_token", "model");
    const auto found = parts.ids.find(parts.info.unknown);
    if (found == parts.ids.end())
      reader.malformed("unk_token \"{}\" is not in the vocabulary", parts.info.unknown);
    parts.model.unknown = found->second;
  }
  parts.model.fuse_unknown = reader.flag(model, "fuse_unk", false);
}

/// Finds the tokens of single bytes, spelled as the characters that stand for them.
void find_bytes(const Reader& reader, TokenizerParts& parts) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto found = parts.ids.find(to_byte_level({&c, 1}));
    if (found != parts.ids.end()) {
      parts.model.byte_tokens[static_cast<size_t>(byte)] = found->second;
    } else if (parts.model.unknown < 0 && is_in_utf8(byte)) {
      reader.unsupported(
          fmt::format("a vocabulary without a token for byte 0x{:02x} and without unk_token", byte));
    }
  }
}

/// Finds the tokens of single characters, and with byte_fallback those of bytes: "<0x0A>".
void find_characters(const Reader& reader, bool byte_fallback, TokenizerParts& parts) {
  parts.model.by_character = true;
  for (const auto& [spelling, id] : parts.ids) {
    uint32_t code;
    if (decode_utf8(spelling.data(), spelling.size(), code) == spelling.size())
      parts.model.character_tokens.emplace(code, id);
  }
  for (int byte = 0; byte_fallback && byte < 256; ++byte) {
    const auto found = parts.ids.find(fmt::format("<0x{:02X}>", byte));
    if (found == parts.ids.end())
      reader.unsupported(fmt::format("byte_fallback without a token <0x{:02X}>", byte));
    parts.model.byte_tokens[static_cast<size_t>(byte)] = found->second;
  }
  if (!byte_fallback && parts.model.unknown < 0)
    reader.unsupported("a vocabulary of characters without byte_fallback and without unk_token");
}

void find_whole_pieces(bool byte_level, TokenizerParts& parts) {
  for (const auto& [spelling, id] : parts.ids) {
    if (!byte_level) {
      parts.model.whole_pieces.emplace(spelling, id);
    } else if (const auto bytes = from_byte_level(spelling)) {
      parts.model.whole_pieces.emplace(*bytes, id);
    }
  }
}

/// Reads a merge, "a b" or ["a", "b"].
std::pair<std::string, std::string> read_merge(const Reader& reader, const Value& merge, size_t index) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  reader.malformed("merge {} must be \"a b\" or [\"a\", \"b\"]", index);
}

/// Reads the merges. Returns true if one joins a token to another that begins with kSpaceMark, unless the
/// first ends with it: then words cannot be merged one by one.
bool read_merges(const Reader& reader, const Value& model, TokenizerParts& parts) {
  const Value& merges = reader.member(model, "merges", "model");
  if (!merges.is_array()) reader.malformed("\"merges\" of model must be a list");
  parts.model.merges = MergeTable(merges.size());
  parts.info.num_merges = static_cast<int64_t>(merges.size());
  const auto id_of = [&](const std::string& token, size_t index) {
    const auto found = parts.ids.find(token);
    if (found == parts.ids.end())
      reader.malformed("merge {} needs token \"{}\", which the vocabulary lacks", index, token);
    return found->second;
  };
  bool spans_words = false;
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto [left, right] = read_merge(reader, merges[i], i);
    spans_words = spans_words || (right.starts_with(kSpaceMark) && !left.ends_with(kSpaceMark));
    parts.model.merges.set(id_of(left, i), id_of(right, i),
                           {static_cast<uint32_t>(i), id_of(left + right, i)});
  }
  return spans_words;
}

bool has_byte_level(const std::vector<PreTokenizerStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const PreTokenizerStep& step) {
    return step.kind == PreTokenizerStep::Kind::kByteLevel;
  });
}

/// Cuts texts that would be one piece into words where that changes no ids, because words repeat.
void cut_words(bool spans_words, TokenizerParts& parts) {
  const bool has_mark = parts.ids.contains(kSpaceMark);
  if (spans_words || !has_mark || !parts.model.whole_pieces.empty()) return;
  for (const PreTokenizerStep& step : parts.pre_tokenizers)
    if (step.kind != PreTokenizerStep::Kind::kMetaspace) return;
  PreTokenizerStep words;
  words.kind = PreTokenizerStep::Kind::kWords;
  words.literal = kSpaceMark;
  parts.pre_tokenizers.push_back(words);
}

void read_model(const Reader& reader, const Value& model, TokenizerParts& parts) {
  const std::string kind = kind_of(model);
  if (kind != "BPE" && !(kind == "?" && model.is_object() && model.contains("merges")))
    reader.unsupported(fmt::format("a model of type {}", kind));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.contains(key) && !model[key].is_null() && model[key] != "") reader.unsupported(key);
  if (model.contains("dropout") && !model["dropout"].is_null() && model["dropout"] != 0.0)
    reader.unsupported("dropout, by which the same text gets other tokens every time,");
  const bool byte_level = has_byte_level(parts.pre_tokenizers);
  const bool byte_fallback = reader.flag(model, "byte_fallback", false);
  if (byte_level && byte_fallback) reader.unsupported("byte_fallback with pre_tokenizer ByteLevel");
  read_vocabulary(reader, model, parts);
  byte_level ? find_bytes(reader, parts) : find_characters(reader, byte_fallback, parts);
  const bool spans_words = read_merges(reader, model, parts);
  if (reader.flag(model, "ignore_merges", false)) find_whole_pieces(byte_level, parts);
  if (!byte_level) cut_words(spans_words, parts);
  parts.info.kind = byte_level      ? "byte-level BPE"
                    : byte_fallback ? "BPE with byte fallback"
                                    : "BPE of characters";
}

void read_added_tokens(const Reader& reader, const Value& list, TokenizerParts& parts) {
  if (!list.is_array()) reader.malformed("\"added_tokens\" must be a list");
  if (list.size() > kMaxAddedTokens)
    reader.malformed("{} added tokens: at most {} are read", list.size(), kMaxAddedTokens);
  for (const Value& item : list) {
    AddedToken token;
    token.content = reader.text(item, "content", "an added token");
    token.id = reader.id(reader.member(item, "id", "an added token"), token.content);
    token.lstrip = reader.flag(item, "lstrip", false);
    token.rstrip = reader.flag(item, "rstrip", false);
    token.special = reader.flag(item, "special", false);
    token.single_word = reader.flag(item, "single_word", false);
    token.normalized = reader.flag(item, "normalized", !token.special);
    if (token.content.empty()) reader.malformed("an added token is empty");
    const auto known = parts.ids.find(token.content);
    if (known == parts.ids.end()) {
      add_token(reader, parts, token.content, token.id);
    } else if (known->second != token.id) {
      reader.malformed("added token \"{}\" has the id {}, but {} in the vocabulary", token.content, token.id,
                       known->second);
    }
    parts.added.push_back(std::move(token));
  }
}

void set_bytes(const TokenDecoder& decoder, const std::string& spelling, int32_t id, TokenizerParts& parts) {
  std::string& bytes = parts.token_bytes[static_cast<size_t>(id)];
  bytes = decoder.bytes(spelling);
  parts.first_bytes.erase(id);
  std::string first = decoder.first_bytes(spelling);
  if (first != bytes) parts.first_bytes.emplace(id, std::move(first));
}

/// Fills the bytes of every token, by id.
void spell_out(const Reader& reader, const TokenDecoder& decoder, TokenizerParts& parts) {
  check_ids(reader, parts);
  std::vector<bool> taken;
  for (const auto& [spelling, id] : parts.ids) {
    const auto index = static_cast<size_t>(id);
    if (index >= taken.size()) taken.resize(index + 1), parts.token_bytes.resize(index + 1);
    if (taken[index]) reader.malformed("two tokens have the id {}", id);
    taken[index] = true;
    set_bytes(decoder, spelling, id, parts);
  }
  // A token that is found in normalised texts is decoded normalised.
  for (const AddedToken& token : parts.added)
    if (token.normalized && !parts.normalizers.empty())
      set_bytes(decoder, normalized(parts.normalizers, token.content), token.id, parts);
  parts.info.num_tokens = static_cast<int64_t>(parts.ids.size());
}

const Value& member_or_null(const Value& root, const char* key) {
  static const Value null;
  const auto found = root.find(key);
  return found == root.end() ? null : *found;
}

/// Returns all rules for ids of a text that files next to a tokenizer can change.
std::string changeable_rules(const TokenizerParts& parts) {
  std::string text;
  for (const PreTokenizerStep& step : parts.pre_tokenizers)
    text += step.kind == PreTokenizerStep::Kind::kPrefixSpace ? "prefix space;" : "";
  for (const AddedToken& token : parts.added)
    text += fmt::format("{} {} {}{}{}{}{}\n", token.id, token.content, token.lstrip, token.rstrip,
                        token.single_word, token.normalized, token.stays_text);
  return text;
}

/// Applies the rules of the files next to a tokenizer. Changes the hash if the ids of texts change.
void use_as(const TokenizerUse& use, size_t vocab_size, TokenizerParts& parts) {
  const std::string before = changeable_rules(parts);
  apply_prefix_space(use, parts);
  add_tokens_of_use(use, vocab_size, parts);
  if (const std::string after = changeable_rules(parts); after != before)
    parts.hash = hash_hex(parts.hash + "\n" + after);
}

}  // namespace

TokenizerParts parse_tokenizer_json(std::string_view text, const std::string& place,
                                    const TokenizerUse& use) {
  const Reader reader(place);
  if (text.size() > kMaxTokenizerBytes) reader.malformed("more than {} MiB", kMaxTokenizerBytes >> 20);
  check_shape(reader, text);
  TokenizerParts parts;
  parts.hash = hash_hex(text);
  parts.info.format = kTokenizerFile;
  try {
    const Value root = Value::parse(text);
    if (!root.is_object()) reader.malformed("not an object");
    const Value& model = reader.member(root, "model", "the file");
    parts.normalizers = read_normalizers(reader, member_or_null(root, "normalizer"));
    const Value& pre_tokenizer = member_or_null(root, "pre_tokenizer");
    parts.pre_tokenizers = read_pre_tokenizers(reader, pre_tokenizer);
    parts.only_byte_level = kind_of(pre_tokenizer) == "ByteLevel";
    parts.info.normalizers = normalizer_names(parts.normalizers);
    parts.info.pre_tokenizers = pre_tokenizer_names(parts.pre_tokenizers);
    read_model(reader, model, parts);
    const size_t vocab_size = parts.ids.size();
    read_added_tokens(reader, root.contains("added_tokens") ? root["added_tokens"] : Value::array(), parts);
    use_as(use, vocab_size, parts);
    spell_out(reader,
              TokenDecoder(reader, member_or_null(root, "decoder"), has_byte_level(parts.pre_tokenizers)),
              parts);
    read_post_processor(reader, member_or_null(root, "post_processor"), parts);
  } catch (const Value::parse_error& error) {
    reader.malformed("not valid JSON at byte {} of {}", error.byte, text.size());
  } catch (const Value::exception&) {
    reader.malformed("not the JSON of a tokenizer");
  }
  return parts;
}

std::string format_tokenizer_json(const TrainedVocabulary& vocabulary) {
  const auto byte_level = [](bool add_prefix_space, bool trim_offsets) {
    return Json{{"type", "ByteLevel"},
                {"add_prefix_space", add_prefix_space},
                {"trim_offsets", trim_offsets},
                {"use_regex", true}};
  };
  Json added = Json::array();
  for (size_t id = 0; id < vocabulary.special_tokens.size(); ++id) {
    added.push_back({{"id", id},
                     {"content", vocabulary.special_tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json head = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", byte_level(false, true)},
                     {"post_processor", byte_level(true, false)},
                     {"decoder", byte_level(true, true)}};
  std::string text = head.dump(2);
  text.erase(text.size() - 2);  // the model is inserted piece by piece, because objects that keep order are
                                // slow
  text += ",\n  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": " +
          (vocabulary.unknown.empty() ? "null" : Json(vocabulary.unknown).dump()) +
          ",\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": "
          "false,\n"
          "    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n    \"vocab\": {";
  const auto quoted = [&](int32_t id) { return Json(vocabulary.tokens[static_cast<size_t>(id)]).dump(); };
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    text += fmt::format("{}\n      {}: {}", id > 0 ? "," : "", quoted(static_cast<int32_t>(id)), id);
  text += "\n    },\n    \"merges\": [";
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const auto [left, right] = vocabulary.merges[i];
    text += fmt::format("{}\n      [\n        {},\n        {}\n      ]", i > 0 ? "," : "", quoted(left),
                        quoted(right));
  }
  text += vocabulary.merges.empty() ? "]\n  }\n}" : "\n    ]\n  }\n}";
  return text;
}

}  // namespace tycho
