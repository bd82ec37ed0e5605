// Maps --ext, --format and --field to the rules by which input files are found.
#include "host/data/input_options.h"

#include <array>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {

BadRows bad_rows(const Arguments& arguments) {
  const std::string& name = arguments.text("bad-rows");
  for (const auto& [text, policy] : enum_names(BadRows()))
    if (name == text) return policy;
  fail(ExitCode::kUsage, "[tycho {}] --bad-rows expects error or skip, got \"{}\"", arguments.verb, name);
}

InputRules input_rules(const Arguments& arguments) {
  InputRules rules{.field = arguments.text("field"), .bad_rows = bad_rows(arguments), .takes_any = true};
  if (!arguments.text("ext").empty()) rules.extensions = arguments.list("ext");
  const std::string& format = arguments.text("format");
  constexpr std::array<std::pair<std::string_view, TextFormat>, 6> kFormats = {
      {{"text", TextFormat::kText},
       {"jsonl", TextFormat::kJsonl},
       {"csv", TextFormat::kCsv},
       {"tsv", TextFormat::kTsv},
       {"parquet", TextFormat::kParquet},
       {"arrow", TextFormat::kArrow}}};
  for (const auto& [name, kind] : kFormats)
    if (format == name) rules.format = kind;
  if (!format.empty() && !rules.format)
    fail(ExitCode::kUsage, "[tycho {}] --format expects text, jsonl, csv, tsv, parquet or arrow, got \"{}\"",
         arguments.verb, format);
  return rules;
}

InputFiles named_inputs(const Arguments& arguments, const char* what) {
  word(arguments, 1, what);
  return find_inputs({arguments.words.begin() + 1, arguments.words.end()}, input_rules(arguments));
}

InputFiles find_inputs(const std::vector<std::string>& words, const InputRules& rules) {
  InputFiles inputs = find_input_files(words, rules);
  for (const std::string& note : inputs.notes) fmt::print(stderr, "note: {}\n", note);
  return inputs;
}

}  // namespace tycho
