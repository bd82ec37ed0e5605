// Writes tokenizers like GPT2Converter and Qwen2Converter of transformers 4.57.
#include "trainer/data/tokenizer/vocab_files.h"

#include <algorithm>

#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/tekken.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"
#include "trainer/data/tokenizer/tokenizer_use.h"

namespace tycho {
namespace {

using Value = TokenizerReader::Value;
using Reader = TokenizerReader;

constexpr char kEndOfText[] = "<|endoftext|>";
constexpr char kQwen2Pattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

/// Components that a tokenizer class adds to BPE.
struct Surroundings {
  Json normalizer, pre_tokenizer;
  std::vector<const char*> defaults;  // names of special tokens for which it uses kEndOfText
};

Surroundings surroundings_of(const Reader& reader, const TokenizerUse& use) {
  const std::string& name = use.tokenizer_class;
  const bool space = use.add_prefix_space.value_or(false);
  if (name.empty() || name == "GPT2Tokenizer" || name == "PreTrainedTokenizer")
    return {nullptr, byte_level(space, true), {"bos_token", "eos_token", "unk_token"}};
  if (name != "Qwen2Tokenizer" || space)
    reader.unsupported(
        fmt::format("a vocab.json with tokenizer_class {}{} (save the tokenizer as tokenizer.json "
                    "with transformers' save_pretrained)",
                    name, space ? " and add_prefix_space" : ""));
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", kQwen2Pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{{"type", "NFC"}},
          {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level(false, false)})}},
          {"eos_token", "pad_token", "unk_token"}};
}

/// Reads merges.txt. Every line is a merge, "a b"; the first one may be a version.
Json read_merges(std::string_view text, const Reader& reader) {
  if (find_not_text(text) != std::string_view::npos) reader.malformed("merges.txt beside it is not UTF-8");
  Json merges = Json::array();
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view merge = text.substr(begin, end - begin);
    begin = end + 1;
    if (merge.ends_with('\r')) merge.remove_suffix(1);
    if (merge.empty() || (line == 1 && merge.starts_with("#version"))) continue;
    if (std::count(merge.begin(), merge.end(), ' ') != 1)
      reader.malformed(
          "expected two tokens with a space between them in line {} of merges.txt beside it, got "
          "\"{}\": copy both files again",
          line, merge.substr(0, 80));
    merges.push_back(std::string(merge));
  }
  return merges;
}

/// Returns the token that the class knows, or none if all its names are given to others. A token that the
/// vocabulary lacks comes last, unless a file next to it has its id.
Json added_tokens(const Value& vocab, const Surroundings& around, const TokenizerUse& use) {
  const bool needed = std::any_of(around.defaults.begin(), around.defaults.end(),
                                  [&](const char* key) { return !use.named.contains(key); });
  const auto known = vocab.find(kEndOfText);
  if (!needed || (known == vocab.end() && !use.added.empty())) return Json::array();
  const Json id = known == vocab.end() ? Json(vocab.size()) : Json(known->get<int64_t>());
  return Json::array({{{"id", id},
                       {"content", kEndOfText},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}}});
}

Json post_processor(const Reader& reader, const Value& vocab, const TokenizerUse& use) {
  if (!use.adds_bos.value_or(false) || use.tokenizer_class == "Qwen2Tokenizer")
    return {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}};
  const auto named = use.named.find("bos_token");
  const std::string bos = named == use.named.end() ? kEndOfText : named->second;
  const auto known = vocab.find(bos);
  if (known == vocab.end()) reader.malformed("add_bos_token adds \"{}\", which is not in vocab.json", bos);
  const Json single = Json::array(
      {{{"SpecialToken", {{"id", bos}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}});
  const Json token = {
      {"id", bos}, {"ids", Json::array({known->get<int64_t>()})}, {"tokens", Json::array({bos})}};
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", single},
          {"special_tokens", {{bos, token}}}};
}

Value parse_vocab(std::string_view text, const Reader& reader) {
  if (text.size() > kMaxTokenizerBytes) reader.malformed("more than {} MiB", kMaxTokenizerBytes >> 20);
  try {
    Value vocab = Value::parse(text);
    if (!vocab.is_object()) reader.malformed("not an object of tokens and ids");
    for (const auto& [token, id] : vocab.items()) reader.id(id, token);
    return vocab;
  } catch (const Value::parse_error& error) {
    reader.malformed("not valid JSON at byte {} of {}", error.byte, text.size());
  }
}

}  // namespace

bool is_vocab_file(const std::string& path) { return path.ends_with(kVocabFile); }

std::string tokenizer_json_of_vocab(std::string_view vocab, std::string_view merges,
                                    const TokenizerFilesBeside& beside, const std::string& place) {
  const Reader reader(place);
  const TokenizerUse use = read_tokenizer_use(beside, place);
  const Surroundings around = surroundings_of(reader, use);
  const Value tokens = parse_vocab(vocab, reader);
  const Json head = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added_tokens(tokens, around, use)},
                     {"normalizer", around.normalizer},
                     {"pre_tokenizer", around.pre_tokenizer},
                     {"post_processor", post_processor(reader, tokens, use)},
                     {"decoder", byte_level(true, true)}};
  const Json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", ""},
                      {"end_of_word_suffix", ""},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"merges", read_merges(merges, reader)}};
  std::string text = head.dump();
  text.pop_back();
  text += ",\"model\":" + model.dump();
  text.pop_back();
  return text + ",\"vocab\":" + std::string(vocab) + "}}\n";
}

std::optional<std::string> made_tokenizer_json(const std::map<std::string, std::string>& files,
                                               const std::string& folder) {
  const auto vocab = files.find(kVocabFile), merges = files.find(kMergesFile);
  if (vocab != files.end() && merges != files.end())
    return tokenizer_json_of_vocab(vocab->second, merges->second, files_beside_tokenizer(files),
                                   folder + "/" + kVocabFile);
  const auto tekken = files.find(kTekkenFile);
  if (tekken == files.end()) return std::nullopt;
  return tokenizer_json_of_tekken(tekken->second, folder + "/" + kTekkenFile);
}

}  // namespace tycho
