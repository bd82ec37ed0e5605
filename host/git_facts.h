// The git commit and changes of the folder that a run is started in.
#pragma once
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Returns entries for a run's provenance: "git.head" (a commit), "git.dirty" (whether tracked files differ
/// from it) and "git.patch" (the difference, when it is at most 256 KiB). Empty without a git repository or
/// without git; never fails. Does not run programs that a repository's configuration names.
Json git_facts(const std::string& folder);

}  // namespace tycho
