// Templates and the processors of older models; golden data sets cover every kind that matters here.
#include "trainer/data/tokenizer/post_processor.h"

#include <utility>

namespace tycho {
namespace {

using Value = TokenizerReader::Value;
using Reader = TokenizerReader;

int32_t known_token(const Reader& reader, const std::string& token, const char* who,
                    const TokenizerParts& parts) {
  const auto found = parts.ids.find(token);
  if (found == parts.ids.end()) reader.malformed("{} adds \"{}\", which is not a token", who, token);
  return found->second;
}

/// Returns the ids of a name in a template: ids that the template lists, else the token of that name.
std::vector<int32_t> template_ids(const Reader& reader, const Value& processor, const std::string& name,
                                  const TokenizerParts& parts) {
  const auto tokens = processor.find("special_tokens");
  if (tokens == processor.end() || !tokens->is_object() || !tokens->contains(name))
    return {known_token(reader, name, "post_processor", parts)};
  const Value& list = reader.member((*tokens)[name], "ids", "a special token of post_processor");
  if (!list.is_array()) reader.malformed("\"ids\" of \"{}\" in post_processor must be a list", name);
  std::vector<int32_t> ids;
  for (const Value& value : list) {
    ids.push_back(reader.id(value, name));
    if (static_cast<size_t>(ids.back()) >= parts.token_bytes.size())
      reader.malformed("post_processor adds token {}, which the vocabulary lacks", ids.back());
  }
  return ids;
}

/// Reads the special tokens that a TemplateProcessing puts before and after the text itself.
void read_template(const Reader& reader, const Value& processor, TokenizerParts& parts) {
  const Value& single = reader.member(processor, "single", "post_processor");
  if (!single.is_array()) reader.malformed("\"single\" of post_processor must be a list");
  bool after = false;
  for (const Value& piece : single) {
    if (piece.is_object() && piece.contains("SpecialToken")) {
      const std::string token = reader.text(piece["SpecialToken"], "id", "SpecialToken");
      for (const int32_t id : template_ids(reader, processor, token, parts))
        (after ? parts.text_end : parts.text_begin).push_back(id);
    } else {
      if (after) reader.unsupported("a post_processor that repeats the text");
      after = true;
    }
  }
}

}  // namespace

void read_post_processor(const TokenizerReader& reader, const Value& processor, TokenizerParts& parts) {
  if (kind_of(processor) == "Sequence") {
    // Each step works on the result of the previous one, so its tokens are added around that.
    for (const Value& step : reader.flat(processor, "processors")) {
      const std::vector<int32_t> begin = std::exchange(parts.text_begin, {});
      const std::vector<int32_t> end = std::exchange(parts.text_end, {});
      read_post_processor(reader, step, parts);
      parts.text_begin.insert(parts.text_begin.end(), begin.begin(), begin.end());
      parts.text_end.insert(parts.text_end.begin(), end.begin(), end.end());
    }
    return;
  }
  const std::string kind = kind_of(processor);
  if (kind == "TemplateProcessing") {
    read_template(reader, processor, parts);
  } else if (kind == "RobertaProcessing" || kind == "BertProcessing") {
    for (const auto& [key, ids] : {std::pair("cls", &parts.text_begin), {"sep", &parts.text_end}}) {
      const Value& token = reader.member(processor, key, "post_processor");
      if (!token.is_array() || token.size() != 2 || !token[0].is_string())
        reader.malformed("\"{}\" of post_processor must be a token and its id", key);
      ids->push_back(known_token(reader, token[0].get<std::string>(), "post_processor", parts));
    }
  } else if (kind != "ByteLevel" && !processor.is_null()) {
    reader.unsupported(fmt::format("post_processor {}", kind));
  }
}

}  // namespace tycho
