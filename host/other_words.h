// Verbs and options that users of other programs type.
#pragma once
#include <string>

#include "host/verb.h"

namespace tycho {

/// Throws Error (kUsage) for a first word that is not a verb, with the command to type instead. `next` is the
/// word after it, "" for none.
[[noreturn]] void refuse_verb(const std::string& given, const std::string& next);

/// Throws Error (kUsage) for an option that the verb does not have. `next` is the word after it, "" for none.
[[noreturn]] void refuse_option(const Verb& verb, const std::string& given, const std::string& next);

}  // namespace tycho
