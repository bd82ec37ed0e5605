// Which rank the others waited for when a run broke, or wait for now, from the files of its ranks.
// Torch-free.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// A rank of the run that broke.
struct RankAtTheEnd {
  int rank = 0;
  bool has_file = false;  // else it was killed, or could not reach the folder
  std::string host, doing, cause;
  std::string in;  // the newest call that it had not finished, "" for none: "all_reduce 31 of dp_shard"
};

/// A call that ranks of a group have not finished together.
struct OpenCall {
  std::string group, verb;  // "all_reduce"
  int64_t number = 0;       // of calls before it in the group
  std::string what;         // "32.0 KB of fp32, step 12, model.layers.3"
  double longest_s = 0;     // that a rank is in it
  std::vector<int> in_it, done, not_there;
  std::vector<int> unknown;            // left no file
  std::vector<std::string> different;  // calls of the same number that are not the same, one for each kind
};

struct WaitingRanks {
  std::string folder;
  std::vector<RankAtTheEnd> ranks;
  std::vector<OpenCall> calls;
  std::vector<int> first;            // others wait for them, and they wait for nobody
  std::vector<std::string> ignored;  // files of an earlier start, or of an earlier look at this one
};

/// Asks the ranks of a live run, which may hang, for their files, and waits until all have left them, or no
/// other one has come for `wait`. Several may ask at the same time. Throws Error (kUnusable) when none comes,
/// or for a file that is damaged.
WaitingRanks ask_for_collectives(const std::string& run_dir, std::chrono::milliseconds wait);

/// Of the newest start that left files in <run_dir>/collectives: when it broke, or what the last one who
/// asked was given. Throws Error (kUnusable) when there are none, or for a file that is damaged.
WaitingRanks waiting_ranks(const std::string& run_dir);

/// For people.
std::string waiting_text(const WaitingRanks& waiting);
Json waiting_json(const WaitingRanks& waiting);

}  // namespace tycho
