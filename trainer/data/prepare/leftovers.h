// Removes leftovers of killed conversions from the folder of a data set.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Removes leftovers of conversions into `out_dir` whose process is gone and which no conversion can
/// continue: work folders without a state, or with the state of `key`, which this conversion has continued or
/// starts over; and files that were not written to their end. A process is gone when this machine has none of
/// its number and nobody holds the lock of a folder with that number. Returns warnings about other work
/// folders.
std::vector<std::string> sweep_leftovers(FileOps& files, const std::string& out_dir, const std::string& key);

}  // namespace tycho
