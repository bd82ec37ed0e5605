// The text of `tycho --help` and of each verb's --help, made from what the verbs say about themselves.
#pragma once
#include <string>
#include <vector>

#include "host/verb.h"

namespace tycho {

/// Returns the text of `tycho --help`: all verbs, by purpose.
std::string help_of_all_verbs();

/// Returns the width of the terminal, also when the help goes to a pager; without a terminal $COLUMNS, or 80.
size_t columns_of_terminal();

/// Returns the text of `tycho VERB --help`. When the first of `words` is a subverb (`tycho data convert
/// --help`), shows its usage, options and examples. A verb whose every usage begins with a subverb lists no
/// options without one.
std::string help_of_verb(const Verb& verb, const std::vector<OptionSpec>& options,
                         const std::vector<std::string>& words);

/// Returns "such as  tycho ckpt ls runs/demo  (`tycho ckpt --help`)": the first example that begins with
/// these words, else the first one.
std::string example_of_verb(const std::string& verb, const std::vector<std::string>& words);

}  // namespace tycho
