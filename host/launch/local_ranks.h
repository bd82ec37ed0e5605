// The ranks of one run as processes of this machine: started, watched and ended together.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace tycho {

struct LocalRanks {
  std::vector<std::string> argv;  // the command of each rank; argv[0] is the program
  int num_ranks = 1;              // on this machine
  int node = 0, num_nodes = 1;  // index of this machine, and how many machines start as many ranks of the run
  // Address and port at which rank 0 listens, and the secret of the ranks. Chosen here for ranks of one node.
  std::string address = "127.0.0.1", port, token;
  std::chrono::duration<double> grace{
      30};                 // time that ranks have to end after one has ended, or after a signal
  bool is_prompt = false;  // the ranks run a prompt, so Ctrl-C only interrupts its entries
};

/// Starts the ranks with TYCHO_RANK and the other TYCHO_* variables in their environment, and returns when
/// all ranks of this machine have ended: 0 when all succeeded, else the exit code of the first one that
/// failed, 128 + signal for one that was killed. Ranks that stopped with a checkpoint (is_stop_code) count as
/// failed only when none did worse, and leave the others time to save. Rank 0 has the terminal; the output of
/// the others goes to stderr, line by line, as "[rank 1] line". kStopSignals are passed on to all ranks;
/// those of a terminal (Ctrl-C, its end) reach them directly. Ranks are killed when this process dies.
/// Requires a process of one thread. Throws Error (kFailure, kTopology) when the ranks cannot be started;
/// none is left then.
int run_local_ranks(const LocalRanks& what);

}  // namespace tycho
