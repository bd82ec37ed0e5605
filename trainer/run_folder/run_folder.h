// The run folder: what was requested and what happened. Torch-free.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/config/train_config.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

class CallbackSource;

/// What was requested, as the host knows it.
struct RunRequest {
  TrainConfig config;           // the resolved recipe, with the factors of a schedule that is a function
  std::string recipe_lua;       // the same as a recipe that can be run again
  std::string provenance_json;  // path -> history of its value
  std::string recipe_hash;
  std::map<std::string, std::string> sources;  // file name -> text of every Lua file that was loaded
  std::vector<std::string> argv;
  std::vector<std::string> pins;
  CallbackSource* callbacks = nullptr;  // outlives the run; none: the recipe's callbacks do not run
  RankPlace place;                      // of this process
  std::string until;   // a duration where this process ends with the run to be gone on with; "" for its end
  bool force = false;  // start even if memory does not suffice, or earlier starts died without progress
  bool* before_first_step = nullptr;  // of the caller; false once this start has done an optimizer step
  bool paranoid = false;  // ranks compare their state (replica_check.h); the run computes the same
};

/// The resolved recipe as a run folder keeps it: recipe.json.
std::string recipe_json(const RunRequest& request);
/// What a sweep sends a trial's output to, inside its run folder.
inline constexpr const char* kOutputFile = "output.txt";

/// Makes this process mask the secrets that the recipe read: they have "***" in its provenance, and their
/// values are still in the environment.
void register_read_secrets(const RunRequest& request);

/// A run folder is new, empty but for logs, or a run's. Throws Error (kFolderOwned) that names what else is
/// there, before anything is written.
void require_own_folder(const std::string& run_dir);

/// Creates or opens <run_dir> and writes recipe.lua, recipe.json, provenance.json, sources/, argv.txt,
/// env.json (see recorded_environment; for its owner), versions.json. A later start in the same folder that
/// differs takes their place, and every one is kept in an attempt-<n>/ beside them. Throws Error (kStorage)
/// when the folder cannot be written.
void write_run_folder(FileOps& files, const std::string& run_dir, const RunRequest& request,
                      const Json& versions);

/// Whether a run was begun in this folder.
bool holds_record(const std::string& run_dir);

/// The newest complete record of a run: its folder itself, or an attempt-<n> in it. Throws Error (kUsage) for
/// a folder that holds none.
std::string newest_record(const std::string& run_dir);

/// Where each source lies inside a record, by name: below sources/, whatever the names are.
std::map<std::string, std::string> source_places(std::vector<std::string> names);

/// The environment as env.json has it: the values of variables that decide how and where a run computes
/// (SLURM_*, CUDA_*, NCCL_*, OMP_*, TYCHO_*, PATH, ...), and null for all others, of which only the name is
/// kept.
Json recorded_environment();
/// The value of a variable as records may keep it.
std::string recordable_value(std::string_view name, const std::string& value);

}  // namespace tycho
