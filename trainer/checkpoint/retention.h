// Removes checkpoints that are not needed any more, COMMIT first. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

inline constexpr char kCommitFile[] = "COMMIT";
inline constexpr char kLatestFile[] = "latest";

/// Returns "step-000000300.1a2b3c4d".
std::string checkpoint_folder_name(int64_t step, const std::string& uuid);
/// Returns the step in such a name; nullopt for any other name.
std::optional<int64_t> step_of_folder_name(const std::string& name);

/// Returns which of these checkpoints (newest first) to remove, oldest first: all after the `keep` newest,
/// except `saved`, the newest of a tag, and `resumed_from` while fewer than two newer ones of this epoch
/// exist (both uuids, empty for none). Returns none when keep is 0.
std::vector<CheckpointInfo> superseded(const std::vector<CheckpointInfo>& committed, int64_t keep,
                                       int64_t epoch, const std::string& saved,
                                       const std::string& resumed_from);

/// Returns true when the folder is a link or contains one: its owner keeps the checkpoint elsewhere, so it is
/// not removed.
bool is_linked(const std::string& path);

/// Removes COMMIT, syncs the folder, then removes the other files and the folder. A crash in between leaves a
/// folder without COMMIT, which is never loaded and which a later sweep removes. Throws Error (kStorage),
/// also for a linked folder, of which nothing is removed.
void remove_checkpoint(FileOps& files, const std::string& path);

/// Removes leftovers of killed processes: folders without COMMIT of steps up to `step`, and `latest.tmp-*`
/// and `COMMIT.tmp-*` of any step. Leaves links alone. Calls check_owner before each removal. Returns what
/// could not be removed and why.
std::vector<std::string> sweep_leftovers(FileOps& files, const std::string& dir, int64_t step,
                                         const std::function<void()>& check_owner);

}  // namespace tycho
