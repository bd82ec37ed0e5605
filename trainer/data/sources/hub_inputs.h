// Data sets on the Hugging Face hub as input files: one split of one configuration, fetched while it is read.
#pragma once
#include <string>

#include "trainer/data/sources/input_files.h"

namespace tycho {

/// Finds the input files that a name on the hub stands for (hf://datasets/OWNER/NAME[@REVISION][/PATH]): a
/// file, a pattern, a configuration by its name or a folder in the repository, or for a whole repository, the
/// split and the configuration of `rules`, as the library `datasets` chooses them. Opens a connection unless
/// the cache has the listing. Files are fetched when they are opened, and those that follow ahead of them.
/// Throws Error like open_hub() and choose_data_files(), and kUnusable for a split that does not exist and
/// for kinds that are not read.
InputFiles find_hub_files(const std::string& name, const InputRules& rules);

}  // namespace tycho
