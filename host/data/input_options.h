// Which files `data convert` and `tokenizer train` read, from their words and options.
#pragma once
#include "host/arguments.h"
#include "trainer/data/text/input_files.h"

namespace tycho {

/// From --ext, --format and --field. Throws Error (kUsage).
InputRules input_rules(const Arguments& arguments);
/// The files that the words after the subverb name. `what` says in messages what those are.
InputFiles named_inputs(const Arguments& arguments, const char* what);

}  // namespace tycho
