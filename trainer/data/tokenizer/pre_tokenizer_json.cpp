// Reads pre-tokenizers by the names that the library `tokenizers` gives them.
#include "trainer/data/tokenizer/pre_tokenizer_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/pattern_json.h"

namespace tycho {
namespace {

using Reader = TokenizerReader;
using Value = Reader::Value;
using PieceKind = PreTokenizerStep::Kind;
using Behavior = PreTokenizerStep::Behavior;
using Prepend = PreTokenizerStep::Prepend;
using Steps = std::vector<PreTokenizerStep>;

PreTokenizerStep of_kind(PieceKind kind) {
  PreTokenizerStep step;
  step.kind = kind;
  return step;
}

Behavior read_behavior(const Reader& reader, const Value& value, const std::string& kind) {
  static constexpr std::array kNames = {
      std::pair("Isolated", Behavior::kIsolated), std::pair("Removed", Behavior::kRemoved),
      std::pair("MergedWithPrevious", Behavior::kWithPrevious),
      std::pair("MergedWithNext", Behavior::kWithNext), std::pair("Contiguous", Behavior::kContiguous)};
  if (kind == "Punctuation" && !value.contains("behavior")) return Behavior::kIsolated;
  const std::string given = reader.text(value, "behavior", kind.c_str());
  for (const auto& [name, behavior] : kNames)
    if (given == name) return behavior;
  reader.unsupported(fmt::format("behavior {} of pre_tokenizer {}", given, kind));
}

PreTokenizerStep read_split(const Reader& reader, const Value& value) {
  const SearchPattern pattern = read_pattern(reader, value, "pre_tokenizer Split");
  PreTokenizerStep step = of_kind(pattern.is_regex ? PieceKind::kRegex : PieceKind::kLiteral);
  step.literal = pattern.literal;
  step.behavior = read_behavior(reader, value, "Split");
  step.invert = reader.flag(value, "invert", false);
  if (!pattern.is_regex) return step;
  for (const SplitPattern known : {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    // These patterns match all of the text, so isolated matches are the same pieces, inverted or not.
    if (step.behavior != Behavior::kIsolated || pattern.regex != pattern_text(known)) continue;
    step.kind = PieceKind::kPattern;
    step.pattern = known;
    return step;
  }
  step.regex = compile_pattern(reader, pattern.regex);
  return step;
}

void read_byte_level(const Reader& reader, const Value& value, Steps& steps) {
  for (const PreTokenizerStep& step : steps)
    if (step.kind == PieceKind::kByteLevel) reader.unsupported("a second pre_tokenizer ByteLevel");
  if (reader.flag(value, "add_prefix_space", true)) steps.push_back(of_kind(PieceKind::kPrefixSpace));
  if (reader.flag(value, "use_regex", true)) {
    steps.push_back(of_kind(PieceKind::kPattern));
    steps.back().pattern = SplitPattern::kGpt2;
  }
  steps.push_back(of_kind(PieceKind::kByteLevel));
}

void read_metaspace(const Reader& reader, const Value& value, Steps& steps) {
  PreTokenizerStep step = of_kind(PieceKind::kMetaspace);
  step.literal = reader.text(value, "replacement", "pre_tokenizer Metaspace");
  uint32_t code;
  if (step.literal.empty() ||
      decode_utf8(step.literal.data(), step.literal.size(), code) != step.literal.size())
    reader.malformed("the replacement of pre_tokenizer Metaspace must be one character");
  std::string scheme = reader.flag(value, "add_prefix_space", true) ? "always" : "never";  // field used until
                                                                                           // version 0.14
  if (value.contains("prepend_scheme"))
    scheme = reader.text(value, "prepend_scheme", "pre_tokenizer Metaspace");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    reader.unsupported(fmt::format("prepend_scheme {} of pre_tokenizer Metaspace", scheme));
  step.prepend = scheme == "always"  ? Prepend::kAlways
                 : scheme == "first" ? Prepend::kFirst
                                     : Prepend::kNever;
  steps.push_back(step);
  if (!reader.flag(value, "split", true)) return;
  PreTokenizerStep split = of_kind(PieceKind::kLiteral);
  split.literal = step.literal;
  split.behavior = Behavior::kWithNext;
  steps.push_back(split);
}

void read_step(const Reader& reader, const Value& value, Steps& steps) {
  const std::string kind = kind_of(value);
  if (kind == "ByteLevel") return read_byte_level(reader, value, steps);
  if (kind == "Metaspace") return read_metaspace(reader, value, steps);
  if (kind == "Split") return steps.push_back(read_split(reader, value));
  PreTokenizerStep step;
  if (kind == "Digits") {
    step.kind = PieceKind::kDigits;
    step.behavior =
        reader.flag(value, "individual_digits", false) ? Behavior::kIsolated : Behavior::kContiguous;
  } else if (kind == "Punctuation") {
    step.kind = PieceKind::kPunctuation;
    step.behavior = read_behavior(reader, value, kind);
  } else if (kind == "WhitespaceSplit") {
    step.kind = PieceKind::kWhitespace;
    step.behavior = Behavior::kRemoved;
  } else if (kind == "Whitespace") {
    step.kind = PieceKind::kRegex;
    step.behavior = Behavior::kRemoved;
    step.invert = true;
    step.regex = compile_pattern(reader, R"([\w\u200c\u200d]+|[^\w\s\u200c\u200d]+)");
  } else if (kind == "CharDelimiterSplit") {
    step.kind = PieceKind::kLiteral;
    step.behavior = Behavior::kRemoved;
    step.literal = reader.text(value, "delimiter", "pre_tokenizer CharDelimiterSplit");
    if (step.literal.empty()) reader.malformed("the delimiter of pre_tokenizer CharDelimiterSplit is empty");
  } else {
    reader.unsupported("pre_tokenizer " + kind);
  }
  steps.push_back(step);
}

std::string name_of(const PreTokenizerStep& step) {
  switch (step.kind) {
    case PieceKind::kPattern:
      return step.pattern == SplitPattern::kGpt2     ? "pattern of GPT-2"
             : step.pattern == SplitPattern::kLlama3 ? "pattern of Llama 3"
                                                     : "pattern of Qwen2";
    case PieceKind::kRegex: return "regular expression " + step.regex->pattern();
    case PieceKind::kLiteral: return "split at \"" + step.literal + "\"";
    case PieceKind::kDigits: return step.behavior == Behavior::kIsolated ? "single digits" : "digits";
    case PieceKind::kPunctuation: return "punctuation";
    case PieceKind::kWhitespace: return "white space";
    case PieceKind::kPrefixSpace: return "prefix space";
    case PieceKind::kByteLevel: return "bytes";
    case PieceKind::kMetaspace: return "spaces as \"" + step.literal + "\"";
    case PieceKind::kWords: return "words";
  }
  return "";
}

}  // namespace

Steps read_pre_tokenizers(const TokenizerReader& reader, const Value& value) {
  Steps steps;
  for (const Value& item : reader.flat(value, "pretokenizers")) read_step(reader, item, steps);
  return steps;
}

std::vector<std::string> pre_tokenizer_names(const Steps& steps) {
  std::vector<std::string> names;
  for (const PreTokenizerStep& step : steps) names.push_back(name_of(step));
  return names;
}

}  // namespace tycho
