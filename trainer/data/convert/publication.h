// All splits of a conversion are renamed into place, even if it is killed after the first.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/convert/convert.h"
#include "trainer/data/convert/split_writer.h"

namespace tycho {

/// In `out_dir`, before the number of a process: the file that lists the renames.
inline constexpr std::string_view kPublication = ".publish-";

/// Notes for people, of a conversion that was interrupted and of this one.
inline constexpr const char* kPublicationCompleted =
    "completed the conversion that was interrupted when all samples were written";
inline std::string continuation_note(int64_t num_samples) {
  return fmt::format("continued the conversion that was interrupted after {} samples", num_samples);
}

/// Renames finished splits into place. A file in `out_dir` lists the renames first: from then on the work
/// folders stay, and if this ends early, complete_publications does the rest. `key`: the conversion's.
void publish_together(FileOps& files, const std::string& out_dir, const std::string& key,
                      const std::vector<SplitWriter*>& writers, const std::vector<ConvertedSplit>& splits);

/// Completes what conversions into `out_dir` had begun to publish when they ended; those that are running are
/// left alone. Returns the splits of the one with this key. Throws Error (kUnusable) naming a file that is
/// damaged, and (kStorage) for failing writes.
std::optional<std::vector<ConvertedSplit>> complete_publications(FileOps& files, const std::string& out_dir,
                                                                 const std::string& key);

}  // namespace tycho
