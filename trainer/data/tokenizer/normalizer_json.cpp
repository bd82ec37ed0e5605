// Reads normalizers by the names that the library `tokenizers` gives them.
#include "trainer/data/tokenizer/normalizer_json.h"

#include <utility>

#include "trainer/data/tokenizer/pattern_json.h"

namespace tycho {
namespace {

using Reader = TokenizerReader;
using NormalizerKind = NormalizerStep::Kind;

NormalizerStep read_step(const Reader& reader, const Reader::Value& value) {
  NormalizerStep step;
  const std::string kind = kind_of(value);
  for (const auto& [name, form] : {std::pair("NFC", NormalForm::kNfc),
                                   {"NFD", NormalForm::kNfd},
                                   {"NFKC", NormalForm::kNfkc},
                                   {"NFKD", NormalForm::kNfkd}}) {
    step.form = form;
    if (kind == name) return step;
  }
  if (kind == "Lowercase") {
    step.kind = NormalizerKind::kLowercase;
  } else if (kind == "StripAccents") {
    step.kind = NormalizerKind::kStripAccents;
  } else if (kind == "Strip") {
    step.kind = NormalizerKind::kStrip;
    step.left = reader.flag(value, "strip_left", true);
    step.right = reader.flag(value, "strip_right", true);
  } else if (kind == "Prepend") {
    step.kind = NormalizerKind::kPrepend;
    step.content = reader.text(value, "prepend", "normalizer Prepend");
  } else if (kind == "Replace") {
    step.kind = NormalizerKind::kReplace;
    step.content = reader.text(value, "content", "normalizer Replace");
    const SearchPattern pattern = read_pattern(reader, value, "normalizer Replace");
    step.literal = pattern.literal;
    if (pattern.is_regex) step.regex = compile_pattern(reader, pattern.regex);
  } else {
    reader.unsupported("normalizer " + kind);
  }
  return step;
}

}  // namespace

std::vector<NormalizerStep> read_normalizers(const TokenizerReader& reader, const Reader::Value& value) {
  std::vector<NormalizerStep> steps;
  for (const auto& item : reader.flat(value, "normalizers")) steps.push_back(read_step(reader, item));
  return steps;
}

std::vector<std::string> normalizer_names(const std::vector<NormalizerStep>& steps) {
  static constexpr const char* kForms[] = {"NFC", "NFD", "NFKC", "NFKD"};
  static constexpr const char* kKinds[] = {"",        "Lowercase", "StripAccents",  "Strip",
                                           "Prepend", "Replace",   "single spaces", "no spaces at the end"};
  std::vector<std::string> names;
  for (const NormalizerStep& step : steps)
    names.emplace_back(step.kind == NormalizerKind::kForm ? kForms[static_cast<size_t>(step.form)]
                                                          : kKinds[static_cast<size_t>(step.kind)]);
  return names;
}

}  // namespace tycho
