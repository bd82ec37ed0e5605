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

/// "step-000000300.1a2b3c4d".
std::string checkpoint_folder_name(int64_t step, const std::string& uuid);
/// The step in such a name; nothing for any other name.
std::optional<int64_t> step_of_folder_name(const std::string& name);

/// Which of these (newest first) go, oldest first: all behind the `keep` newest, but never `saved`, the
/// newest of a tag, nor `resumed_from` while fewer than two newer ones of this epoch exist (both uuids, empty
/// for none). None when keep is 0.
std::vector<CheckpointInfo> superseded(const std::vector<CheckpointInfo>& committed, int64_t keep,
                                       int64_t epoch, const std::string& saved,
                                       const std::string& resumed_from);

/// Whether the folder is a link or holds one: somebody keeps the checkpoint elsewhere, and it is not ours to
/// remove.
bool is_linked(const std::string& path);

/// COMMIT, fsync of the folder, the other files, the folder. A crash in between leaves a folder without
/// COMMIT, which nobody loads and a later sweep removes. Throws Error (kStorage), also for a linked one, of
/// which nothing is removed.
void remove_checkpoint(FileOps& files, const std::string& path);

/// Removes what killed processes left: folders without COMMIT of steps up to `step`, and `latest.tmp-*` and
/// `COMMIT.tmp-*` of any step. Links are left alone. Calls check_owner before each. Returns what could not be
/// removed and why.
std::vector<std::string> sweep_leftovers(FileOps& files, const std::string& dir, int64_t step,
                                         const std::function<void()>& check_owner);

}  // namespace tycho
