// The run folder: what was requested and what happened. Torch-free.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/session/run_request.h"

namespace tycho {

/// Returns the resolved recipe in the form of a run folder's recipe.json.
std::string recipe_json(const RunRequest& request);
/// File inside a trial's run folder to which a sweep sends its output.
inline constexpr const char* kOutputFile = "output.txt";

/// Masks in this process the secrets that the recipe read: its provenance has "***" for them, but the
/// environment still has their values.
void register_read_secrets(const RunRequest& request);

/// Throws Error (kFolderOwned), before anything is written, unless a run folder is new, empty except for
/// logs, or a run's. The message names what else is there.
void require_own_folder(const std::string& run_dir);

/// Creates or opens <run_dir> and writes recipe.lua, recipe.json, provenance.json, sources/, argv.txt,
/// env.json (see recorded_environment; readable by its owner), versions.json. A later start in the same
/// folder that differs replaces them, and every start is kept in an attempt-<n>/ beside them. Throws Error
/// (kStorage) when the folder cannot be written.
void write_run_folder(FileOps& files, const std::string& run_dir, const RunRequest& request,
                      const Json& versions);

/// Returns true when a run was begun in this folder.
bool holds_record(const std::string& run_dir);

/// Returns the newest complete record of a run: its folder itself, or an attempt-<n> in it. Throws Error
/// (kUsage) for a folder without one.
std::string newest_record(const std::string& run_dir);

/// Returns the path of each source inside a record, by name: below sources/, whatever the names are.
std::map<std::string, std::string> source_places(std::vector<std::string> names);

/// Returns the environment for env.json: the values of variables that decide how and where a run computes
/// (SLURM_*, CUDA_*, NCCL_*, OMP_*, TYCHO_*, PATH, ...), and null for all others, of which only the name is
/// kept.
Json recorded_environment();
/// Returns the value of a variable in the form that records may keep.
std::string recordable_value(std::string_view name, const std::string& value);

}  // namespace tycho
