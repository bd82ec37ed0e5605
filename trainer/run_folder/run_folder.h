// The run folder: what was requested and what happened. Torch-free.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

class CallbackSource;

/// What was requested, as the host knows it.
struct RunRequest {
  std::string config_json;      // the resolved recipe, canonical JSON: what TrainConfig is read from
  std::string recipe_lua;       // the same as a recipe that can be run again
  std::string provenance_json;  // path -> history of its value
  std::string recipe_hash;
  std::map<std::string, std::string> sources;  // file name -> text of every Lua file that was loaded
  std::vector<std::string> argv;
  std::vector<std::string> pins;
  std::vector<double> schedule;         // factors of a scheduler = fn, by step; empty for another
  CallbackSource* callbacks = nullptr;  // outlives the run; none: the recipe's callbacks do not run
  RankPlace place;                      // of this process
  std::string until;  // a duration where this process ends with the run to be gone on with; "" for its end
  bool paranoid = false;  // ranks compare their state (same_state.h); the run computes the same
};

/// Creates or opens <run_dir> and writes recipe.lua, recipe.json, provenance.json, sources/, argv.txt,
/// env.json (without secrets, for its owner), versions.json. A later start in the same folder that differs
/// takes their place, and every one is kept in an attempt-<n>/ beside them. Throws Error (kStorage) when the
/// folder cannot be written.
void write_run_folder(FileOps& files, const std::string& run_dir, const RunRequest& request,
                      const Json& versions);

/// Whether a run was begun in this folder.
bool holds_record(const std::string& run_dir);

/// The newest complete record of a run: its folder itself, or an attempt-<n> in it. Throws Error (kUsage) for
/// a folder that holds none.
std::string newest_record(const std::string& run_dir);

/// Where each source lies inside a record, by name: below sources/, whatever the names are.
std::map<std::string, std::string> source_places(std::vector<std::string> names);

inline constexpr const char* kMasked = "***";

/// The environment with values masked whose names look like secrets (KEY, TOKEN, SECRET, PASSWORD,
/// CREDENTIAL...).
Json environment_without_secrets();

}  // namespace tycho
