// The place of a process in its run: its rank, its local rank, and the rendezvous.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace tycho {

/// Rank of this process, and address at which the ranks of its run meet.
struct RankInfo {
  int rank = 0, num_ranks = 1;
  int local_rank = 0, num_local_ranks = 1;  // among the ranks of this machine
  /// Number of machines; 1 where machines have different numbers of ranks.
  int num_nodes() const { return num_ranks % num_local_ranks == 0 ? num_ranks / num_local_ranks : 1; }
  std::string address = "127.0.0.1";  // address on which rank 0 listens
  int port = 0;
  std::string job;     // tells apart jobs that meet at the same port; not secret: others can guess it
  std::string token;   // secret of the ranks of this job; "" when rank 0 has yet to write it
  int listener = -1;   // rank 0's descriptor that listens at that port already; rendezvous takes it over
  std::string source;  // "" alone, else for users: "tycho launch", "Slurm", "RANK and WORLD_SIZE"
};

/// Name of the variable with the descriptor of the socket that the launcher opened for rank 0.
inline constexpr const char* kListenerVariable = "TYCHO_LISTENER_FD";

/// Returns the value of an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Returns a function that reads the variables of this process when it is called.
Environment process_environment();

/// Finds the place of this process. The first match wins: TYCHO_RANK, TYCHO_NUM_RANKS, TYCHO_LOCAL_RANK,
/// TYCHO_NUM_LOCAL_RANKS, TYCHO_ADDRESS, TYCHO_PORT, TYCHO_TOKEN and, for rank 0, TYCHO_LISTENER_FD, as
/// `tycho launch` sets them (TYCHO_NUM_RANKS=1 is one process alone); Slurm's, when srun started this process
/// as one of several tasks; RANK, WORLD_SIZE, MASTER_ADDR and their like; else one process alone.
/// TYCHO_ADDRESS and TYCHO_PORT, each by itself, also override Slurm and MASTER_ADDR, and TYCHO_TOKEN is the
/// token there too. An empty variable counts as not set. Throws Error (kTopology) when variables are missing
/// or contradict each other, naming them, and for a token that is too short to be a secret.
RankInfo find_rank_place(const Environment& variable);

}  // namespace tycho
