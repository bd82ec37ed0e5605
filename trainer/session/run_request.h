// The request of the host to the engine for one run. Torch-free.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/recipe/train_config.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

class CallbackSource;

/// The request for a run, from the host.
struct RunRequest {
  TrainConfig config;           // the resolved recipe, with the table of a schedule that is a function
  std::string recipe_lua;       // a recipe that resolves to the same config
  std::string provenance_json;  // path -> history of its value
  std::string recipe_hash;
  std::map<std::string, std::string> sources;  // file name -> text of every Lua file that was loaded
  std::vector<std::string> argv;
  std::vector<std::string> pins;
  CallbackSource* callbacks = nullptr;  // must outlive the run; null: the recipe's callbacks do not run
  RankInfo place;                       // rank of this process
  std::string until;   // duration after which this process ends and the run can be resumed; "" for its end
  bool force = false;  // start even if memory does not suffice, or earlier starts died without progress
  std::map<std::string, std::string> commits;  // of branches of the hub, by their names
  /// The caller's; set to rank 0's commits if a rank has others, which then ends this start on all ranks.
  std::map<std::string, std::string>* commits_of_rank_0 = nullptr;
  bool* before_first_step = nullptr;  // the caller's; false once this start has done an optimizer step
  bool paranoid = false;              // ranks compare their state (replica_check.h); the results are the same
};

}  // namespace tycho
