// Reads back the record of a run from its folder. Torch-free.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// The newest record of a run folder (see write_run_folder).
struct RunRecord {
  std::string folder;             // the run folder, or an attempt-<n> in it
  Json config;                    // recipe.json
  Json provenance;                // provenance.json
  Json environment;               // env.json; {} for users who may not read it
  std::vector<std::string> argv;  // argv.txt; secrets are masked
};

/// Throws Error: kUsage for a folder without a run, kUnusable when its files cannot be read.
RunRecord read_run_record(const std::string& run_dir);

/// Returns every recipe file that the run was read from: file name -> text. Throws Error (kUnusable) that
/// names each file that is missing or has changed since the run was started.
std::map<std::string, std::string> read_run_sources(const RunRecord& record);

/// Returns the commands that the run has applied, in order: [{step, name, arguments, by, key}]; key is
/// key_of(). Leaves out those after the checkpoint that the run later resumed from, and those that a
/// later start ended. Empty for a folder where no run wrote events.
Json applied_commands(const std::string& run_dir);

}  // namespace tycho
