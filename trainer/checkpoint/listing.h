// Parts that listings of folders and of stores of objects share. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

/// Returns what the text of a COMMIT says of the checkpoint at `path`. `size_of` returns the number of bytes
/// of a file beside it. Throws Error (kUnusable) for a damaged text, and for a file of another size.
CheckpointInfo info_of_commit(const std::string& text, const std::string& path,
                              const std::function<int64_t(const std::string& file)>& size_of);

/// Sorts checkpoints as list_checkpoints() returns them: of the newest epoch, the last saved one first. Equal
/// ones keep their order.
void sort_newest_first(std::vector<CheckpointInfo>& checkpoints);

}  // namespace tycho
