// The text of `tycho --help` and of each verb's --help, made from what the verbs say about themselves.
#pragma once
#include <string>
#include <vector>

#include "host/verb.h"

namespace tycho {

/// `tycho --help`: all verbs, by what they are for.
std::string help_of_all_verbs();

/// `tycho VERB --help`. With the first of `words` a subverb (`tycho data convert --help`): its own usage,
/// options and examples. A verb whose every use begins with a subverb lists no options without one.
std::string help_of_verb(const Verb& verb, const std::vector<OptionSpec>& options,
                         const std::vector<std::string>& words);

/// "such as  tycho ckpt ls runs/demo  (`tycho ckpt --help`)": the first example that begins with these words,
/// else the first one.
std::string example_of_verb(const std::string& verb, const std::vector<std::string>& words);

}  // namespace tycho
