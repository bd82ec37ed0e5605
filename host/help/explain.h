// tycho help VERB, tycho help TOPIC.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Prints the help of a verb (`data convert`), the page of a topic (`numerics`), or both where a page has the
/// name of a verb. Throws Error (kUsage) with a suggestion for other words. Returns the exit code.
int explain(const std::vector<std::string>& words);

}  // namespace tycho
