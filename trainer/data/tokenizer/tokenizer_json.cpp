// Every field that changes what encode gives is either understood or refused by name.
#include "trainer/data/tokenizer/tokenizer_json.h"

#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/byte_level.h"
#include "trainer/data/tokenizer/post_processor.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {
namespace {

using Value = TokenizerReader::Value;
using Reader = TokenizerReader;

constexpr size_t kMaxFileBytes = 256u << 20;

/// Puts a token's bytes at its id. Ids may have gaps.
void place_token(const Reader& reader, TokenizerParts& parts, const std::string& spelling, int32_t id) {
  const auto index = static_cast<size_t>(id);
  if (index >= parts.token_bytes.size()) parts.token_bytes.resize(index + 1);
  if (!parts.token_bytes[index].empty()) reader.malformed("two tokens have the id {}", id);
  parts.token_bytes[index] = from_byte_level(spelling).value_or(spelling);
  if (!parts.ids.emplace(spelling, id).second) reader.malformed("token \"{}\" appears twice", spelling);
}

void read_vocabulary(const Reader& reader, const Value& model, TokenizerParts& parts) {
  const Value& vocab = reader.member(model, "vocab", "model");
  if (!vocab.is_object()) reader.malformed("\"vocab\" of model must be an object of tokens and ids");
  for (const auto& [spelling, value] : vocab.items())
    if (!spelling.empty()) place_token(reader, parts, spelling, reader.id(value, spelling));
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto found = parts.ids.find(to_byte_level({&c, 1}));
    if (found == parts.ids.end())
      reader.unsupported(fmt::format("a vocabulary without a token for byte 0x{:02x}", byte));
    parts.model.byte_tokens[static_cast<size_t>(byte)] = found->second;
  }
  if (!reader.flag(model, "ignore_merges", false)) return;
  for (const auto& [spelling, id] : parts.ids)
    if (const auto bytes = from_byte_level(spelling)) parts.model.whole_pieces.emplace(*bytes, id);
}

void read_normalizer(const Reader& reader, const Value& normalizer, TokenizerParts& parts) {
  const std::string kind = kind_of(normalizer);
  if (kind == "Sequence") {
    const Value& steps = reader.member(normalizer, "normalizers", "normalizer");
    if (!steps.is_array()) reader.malformed("\"normalizers\" must be a list");
    for (const Value& step : steps) {
      if (kind_of(step) == "Sequence") reader.unsupported("a normalizer Sequence inside another");
      read_normalizer(reader, step, parts);
    }
    return;
  }
  for (const auto& [name, form] : {std::pair("NFC", NormalForm::kNfc),
                                   {"NFD", NormalForm::kNfd},
                                   {"NFKC", NormalForm::kNfkc},
                                   {"NFKD", NormalForm::kNfkd}})
    if (kind == name) return parts.normalizers.push_back(form);
  reader.unsupported(fmt::format("normalizer {}", kind));
}

/// A merge is "a b" or ["a", "b"].
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

void read_merges(const Reader& reader, const Value& model, TokenizerParts& parts) {
  const Value& merges = reader.member(model, "merges", "model");
  if (!merges.is_array()) reader.malformed("\"merges\" of model must be a list");
  parts.model.merges = MergeTable(merges.size());
  const auto id_of = [&](const std::string& token, size_t index) {
    const auto found = parts.ids.find(token);
    if (found == parts.ids.end())
      reader.malformed("merge {} needs token \"{}\", which the vocabulary lacks", index, token);
    return found->second;
  };
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto [left, right] = read_merge(reader, merges[i], i);
    parts.model.merges.set(id_of(left, i), id_of(right, i),
                           {static_cast<uint32_t>(i), id_of(left + right, i)});
  }
}

void read_model(const Reader& reader, const Value& model, TokenizerParts& parts) {
  const std::string kind = kind_of(model);
  if (kind != "BPE" && !(kind == "?" && model.is_object() && model.contains("merges")))
    reader.unsupported(fmt::format("a model of type {}", kind));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.contains(key) && !model[key].is_null() && model[key] != "") reader.unsupported(key);
  if (model.contains("dropout") && !model["dropout"].is_null() && model["dropout"] != 0.0)
    reader.unsupported("dropout");
  if (reader.flag(model, "byte_fallback", false)) reader.unsupported("byte_fallback");
  read_vocabulary(reader, model, parts);
  read_merges(reader, model, parts);
}

void read_byte_level(const Reader& reader, const Value& step, bool after_split, TokenizerParts& parts) {
  parts.add_prefix_space = reader.flag(step, "add_prefix_space", true);
  const bool use_regex = reader.flag(step, "use_regex", true);
  if (!after_split) {
    parts.pattern = use_regex ? SplitPattern::kGpt2 : SplitPattern::kNone;
  } else if (use_regex || parts.add_prefix_space) {
    reader.unsupported("a Split before a ByteLevel with use_regex or add_prefix_space");
  }
}

void read_split(const Reader& reader, const Value& step, TokenizerParts& parts) {
  const Value& pattern = reader.member(step, "pattern", "pre_tokenizer Split");
  const std::string text = pattern.is_object() && pattern.contains("Regex") && pattern["Regex"].is_string()
                               ? pattern["Regex"].get<std::string>()
                               : pattern.dump(-1, ' ', false, Value::error_handler_t::replace);
  if (text == pattern_text(SplitPattern::kGpt2)) {
    parts.pattern = SplitPattern::kGpt2;
  } else if (text == pattern_text(SplitPattern::kLlama3)) {
    parts.pattern = SplitPattern::kLlama3;
  } else {
    reader.unsupported(fmt::format("pre_tokenizer Split with the pattern {}", text));
  }
  if (reader.text(step, "behavior", "pre_tokenizer Split") != "Isolated" ||
      reader.flag(step, "invert", false))
    reader.unsupported("a pre_tokenizer Split that is not Isolated");
}

void read_pre_tokenizer(const Reader& reader, const Value& pre_tokenizer, TokenizerParts& parts) {
  const bool sequence = kind_of(pre_tokenizer) == "Sequence";
  const Value steps = sequence ? reader.member(pre_tokenizer, "pretokenizers", "pre_tokenizer")
                               : Value::array({pre_tokenizer});
  if (!steps.is_array()) reader.malformed("\"pretokenizers\" must be a list");
  bool split = false, byte_level = false;
  for (const Value& step : steps) {
    const std::string kind = kind_of(step);
    if (kind == "Split" && !split && !byte_level) {
      read_split(reader, step, parts);
      split = true;
    } else if (kind == "ByteLevel" && !byte_level) {
      read_byte_level(reader, step, split, parts);
      byte_level = true;
    } else {
      reader.unsupported(fmt::format("pre_tokenizer {} here", kind));
    }
  }
  if (!byte_level) reader.unsupported("a pre_tokenizer without ByteLevel");
}

void read_added_tokens(const Reader& reader, const Value& list, TokenizerParts& parts) {
  if (!list.is_array()) reader.malformed("\"added_tokens\" must be a list");
  for (const Value& item : list) {
    AddedToken token;
    token.content = reader.text(item, "content", "an added token");
    token.id = reader.id(reader.member(item, "id", "an added token"), token.content);
    token.lstrip = reader.flag(item, "lstrip", false);
    token.rstrip = reader.flag(item, "rstrip", false);
    token.special = reader.flag(item, "special", false);
    token.normalized = reader.flag(item, "normalized", !token.special);
    if (reader.flag(item, "single_word", false))
      reader.unsupported("single_word of added token " + token.content);
    if (token.content.empty()) reader.malformed("an added token is empty");
    const auto known = parts.ids.find(token.content);
    if (known == parts.ids.end()) {
      place_token(reader, parts, token.content, token.id);
    } else if (known->second != token.id) {
      reader.malformed("added token \"{}\" has the id {}, but {} in the vocabulary", token.content, token.id,
                       known->second);
    }
    parts.added.push_back(std::move(token));
  }
}

}  // namespace

TokenizerParts parse_tokenizer_json(std::string_view text, const std::string& place) {
  const Reader reader(place);
  if (text.size() > kMaxFileBytes) reader.malformed("more than {} MiB", kMaxFileBytes >> 20);
  TokenizerParts parts;
  parts.hash = hash_hex(text);
  try {
    const Value root = Value::parse(text);
    const auto normalizer = root.is_object() ? root.find("normalizer") : root.end();
    if (normalizer != root.end() && !normalizer->is_null()) read_normalizer(reader, *normalizer, parts);
    read_model(reader, reader.member(root, "model", "the file"), parts);
    read_pre_tokenizer(reader, reader.member(root, "pre_tokenizer", "the file"), parts);
    if (root.contains("added_tokens")) read_added_tokens(reader, root["added_tokens"], parts);
    if (root.contains("post_processor")) read_post_processor(reader, root["post_processor"], parts);
    const std::string decoder = kind_of(reader.member(root, "decoder", "the file"));
    if (decoder != "ByteLevel") reader.unsupported(fmt::format("decoder {}", decoder));
  } catch (const Value::parse_error& error) {
    reader.malformed("not valid JSON at byte {} of {}", error.byte, text.size());
  } catch (const Value::exception&) {
    reader.malformed("not the JSON of a tokenizer");
  }
  return parts;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error))
    fail(ExitCode::kUnusable, "[tokenizer] {} is a folder: name the file, {}/{}", path, path, kTokenizerFile);
  TokenizerParts parts = parse_tokenizer_json(read_file(path), path);
  const std::string config = fs::path(path).replace_filename(kTokenizerConfigFile);
  if (fs::path(path).filename() == kTokenizerFile && fs::exists(config, error))
    read_tokenizer_config(read_file(config), config, parts);
  return std::make_unique<BpeTokenizer>(std::move(parts));
}

std::unique_ptr<Tokenizer> tokenizer_from_text(std::string_view text, const std::string& place) {
  return std::make_unique<BpeTokenizer>(parse_tokenizer_json(text, place));
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
  text.erase(text.size() - 2);  // the model goes inside, written piece by piece: objects keep order slowly
  text +=
      ",\n  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
      "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": "
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
