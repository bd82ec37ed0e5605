// Maps --ext, --format and --field to the rules by which input files are found.
#include "host/input_options.h"

#include "trainer/base/error.h"

namespace tycho {

InputRules input_rules(const Arguments& arguments) {
  InputRules rules{.field = arguments.text("field")};
  if (!arguments.text("ext").empty()) rules.extensions = arguments.list("ext");
  const std::string& format = arguments.text("format");
  if (format == "text") {
    rules.format = TextFormat::kText;
  } else if (format == "jsonl") {
    rules.format = TextFormat::kJsonl;
  } else if (format == "parquet") {
    rules.format = TextFormat::kParquet;
  } else if (!format.empty()) {
    fail(ExitCode::kUsage, "[tycho {}] --format expects text, jsonl or parquet, given \"{}\"", arguments.verb,
         format);
  }
  return rules;
}

InputFiles named_inputs(const Arguments& arguments, const char* what) {
  word(arguments, 1, what);
  return find_input_files({arguments.words.begin() + 1, arguments.words.end()}, input_rules(arguments));
}

}  // namespace tycho
