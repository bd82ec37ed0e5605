// The files of a run of Weights & Biases in its run folder, and sending what a server lacks of them after the
// run.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/recipe/log.h"

namespace tycho {

/// File in the run folder with the id that all attempts share.
inline constexpr const char* kWandbIdFile = "/wandb_run_id.txt";

/// Returns the id. Throws Error (kStorage) when the file holds none.
std::string wandb_run_id(const std::string& run_dir);

/// Returns the folder with the files of all attempts.
std::string wandb_dir(const WandbSinkConfig& config, const std::string& run_dir);

struct WandbSynced {
  int64_t num_rows = 0;  // that were missing
  std::string page;      // address of the run
};

/// Sends everything that the folder of a run has and the server lacks. Throws Error: kUnusable when the
/// folder is none of a run with t.log.wandb or the server refuses, kStorage when the server cannot be
/// reached; what was sent by then stays.
WandbSynced sync_wandb(const std::string& run_dir);

}  // namespace tycho
