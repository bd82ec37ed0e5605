// The git commit and changes of the folder that a run is started in.
#pragma once
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Entries for a run's provenance: "git.head" (a commit), "git.dirty" (whether tracked files differ from it)
/// and "git.patch" (how, when that is at most 256 KiB). Empty where no git repository is, and no git; never
/// fails. Programs that a repository's configuration names are not run.
Json git_facts(const std::string& folder);

}  // namespace tycho
