// What `data convert`, `data stats` and `tokenizer train` read, from their words and options.
#pragma once
#include <string>
#include <vector>

#include "host/arguments.h"
#include "trainer/data/bad_rows.h"
#include "trainer/data/text/input_files.h"

namespace tycho {

/// From --bad-rows. Throws Error (kUsage).
BadRows bad_rows(const Arguments& arguments);
/// From --ext, --format, --field and --bad-rows. Throws Error (kUsage).
InputRules input_rules(const Arguments& arguments);
/// The files that the words after the subverb name; notes about others are printed. `what` says in messages
/// what those are.
InputFiles named_inputs(const Arguments& arguments, const char* what);

/// The files that these words name; notes about others are printed.
InputFiles find_inputs(const std::vector<std::string>& words, const InputRules& rules);

}  // namespace tycho
