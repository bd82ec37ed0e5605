// The inputs of `data convert`, `data stats` and `tokenizer train`, from their words and options.
#pragma once
#include <string>
#include <vector>

#include "host/arguments.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/recipe/bad_rows.h"

namespace tycho {

/// Reads --bad-rows. Throws Error (kUsage).
BadRows bad_rows(const Arguments& arguments);
/// Reads --ext, --format, --field and --bad-rows. Throws Error (kUsage).
InputRules input_rules(const Arguments& arguments);
/// Returns the files named by the words after the subverb, and prints notes about the others. `what` names
/// the files in messages.
InputFiles named_inputs(const Arguments& arguments, const char* what);

/// Returns the files that these words name, and prints notes about the others.
InputFiles find_inputs(const std::vector<std::string>& words, const InputRules& rules);

}  // namespace tycho
