// Renames all splits of a conversion into place, even if it is killed after the first rename.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/split_writer.h"

namespace tycho {

/// Prefix of the file in `out_dir` that lists the renames; the number of the process follows.
inline constexpr std::string_view kPublication = ".publish-";

/// Notes for users about a conversion that was interrupted and continued.
inline constexpr const char* kPublicationCompleted =
    "completed the conversion that was interrupted when all samples were written";
inline std::string continuation_note(int64_t num_samples) {
  return fmt::format("continued the conversion that was interrupted after {} samples", num_samples);
}

/// Renames finished splits into place. First writes a file in `out_dir` that lists the renames: from then on
/// the work folders stay, and if this call ends early, complete_publications renames the rest. `key`: the
/// conversion's.
void publish_together(FileOps& files, const std::string& out_dir, const std::string& key,
                      const std::vector<SplitWriter*>& writers, const std::vector<ConvertedSplit>& splits);

/// Completes the renames of interrupted conversions into `out_dir`; running conversions are left alone.
/// Returns the splits of the conversion with this key. Throws Error (kUnusable) naming a file that is
/// damaged, and (kStorage) for failing writes.
std::optional<std::vector<ConvertedSplit>> complete_publications(FileOps& files, const std::string& out_dir,
                                                                 const std::string& key);

}  // namespace tycho
