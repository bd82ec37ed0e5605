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
  bool has_file = false;  // false: it was killed, or could not reach the folder
  std::string host, doing, cause;
  std::string in;  // newest call that it had not finished, "" for none: "all_reduce 31 of dp_shard"
};

/// A call that the ranks of a group have not all finished.
struct OpenCall {
  std::string group, op;  // "all_reduce"
  int64_t number = 0;     // number of calls before it in the group
  std::string what;       // "32.0 KB of fp32, step 12, model.layers.3"
  double longest_s = 0;   // longest time that a rank has been in it
  std::vector<int> in_it, done, not_there;
  std::vector<int> unknown;            // left no file
  std::vector<std::string> different;  // calls of the same number that differ, one for each kind
};

struct WaitingRanks {
  std::string folder;
  std::vector<RankAtTheEnd> ranks;
  std::vector<OpenCall> calls;
  std::vector<int> first;            // ranks that others wait for and that wait for nobody
  std::vector<std::string> ignored;  // files of an earlier start, or of an earlier request to this one
};

/// Asks the ranks of a live run, which may hang, for their files. Waits until all have written them, or until
/// no further one has come for `wait`. Several processes may ask at the same time. Throws Error (kUnusable)
/// when no file comes, or for a damaged one.
WaitingRanks ask_for_collectives(const std::string& run_dir, std::chrono::milliseconds wait);

/// Reads the files of the newest start in <run_dir>/collectives: those from when it broke, or the answers to
/// the last request. Throws Error (kUnusable) when there are none, or for a damaged one.
WaitingRanks waiting_ranks(const std::string& run_dir);

/// Returns a text for display.
std::string waiting_text(const WaitingRanks& waiting);
Json waiting_json(const WaitingRanks& waiting);

}  // namespace tycho
