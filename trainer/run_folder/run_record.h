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
  Json environment;               // env.json; {} for people who may not read it
  std::vector<std::string> argv;  // argv.txt; secrets are masked
};

/// Throws Error: kUsage for a folder that is none of a run, kUnusable for one whose files cannot be read.
RunRecord read_run_record(const std::string& run_dir);

/// File name -> text of every recipe file that the run was read from. Throws Error (kUnusable) that names
/// each file that is missing or is no longer what the run was started from.
std::map<std::string, std::string> read_run_sources(const RunRecord& record);

/// What commands the run has applied, in order: [{step, name, arguments, by}]. Without those after the
/// checkpoint that the run was later gone on with from, and those that a later start ended; empty for a
/// folder where no run wrote events.
Json applied_commands(const std::string& run_dir);

}  // namespace tycho
