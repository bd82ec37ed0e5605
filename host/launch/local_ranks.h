// The ranks of one run as processes of this machine: started, watched and ended together.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace tycho {

struct LocalRanks {
  std::vector<std::string> argv;  // what each rank runs; argv[0] is the program
  int num_ranks = 1;              // of this machine
  int node = 0, num_nodes = 1;    // this machine among those that start as many ranks of the same run
  // Where rank 0 listens and what only the ranks know; chosen here when there is one machine.
  std::string address = "127.0.0.1", port, token;
  std::chrono::duration<double> grace{30};  // what ranks have to end when one has ended, or after a signal
  bool is_prompt = false;                   // Ctrl-C, as often as it comes, is for what was entered
};

/// Starts the ranks with TYCHO_RANK and its like in their environment, and returns when all of this machine
/// have ended: with 0 when all did well, else with the exit code of the one that ended badly first, 128 +
/// signal for one that was killed. Ranks that stopped with a checkpoint (is_stop_code) end badly only when
/// none did worse, and leave the others time to save. Rank 0 has the terminal; what others write comes to
/// stderr, line by line, as "[rank 1] line". kStopSignals are passed on to all ranks; those of a
/// terminal (Ctrl-C, its end) reach them by themselves. Ranks are killed when this process dies. On a process
/// of one thread. Throws Error (kFailure, kTopology) when they cannot be started; none is left then.
int run_local_ranks(const LocalRanks& what);

}  // namespace tycho
