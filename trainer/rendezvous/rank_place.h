// The place of a process in its run: its rank, its local rank, and the rendezvous.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace tycho {

/// Which rank this process is, and where the ranks of its run meet.
struct RankPlace {
  int rank = 0, num_ranks = 1;
  int local_rank = 0, num_local_ranks = 1;  // among those of this machine
  /// 1 where machines have different numbers of ranks.
  int num_machines() const { return num_ranks % num_local_ranks == 0 ? num_ranks / num_local_ranks : 1; }
  std::string address = "127.0.0.1";  // where rank 0 listens
  int port = 0;
  std::string job;    // tells jobs apart that meet at the same port; no secret: others can guess it
  std::string token;  // what only ranks of this job know; "" when they have yet to hand it over
  int listener =
      -1;  // of rank 0: a descriptor that listens at that port already; those who meet take it over
  std::string source;  // "" alone, else for people: "tycho launch", "Slurm", "RANK and WORLD_SIZE"
};

/// Names the descriptor of the socket that the launcher opened for rank 0.
inline constexpr const char* kListenerVariable = "TYCHO_LISTENER_FD";

/// The value of an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads the variables of this process when it is called.
Environment process_environment();

/// The first match wins: TYCHO_RANK, TYCHO_NUM_RANKS, TYCHO_LOCAL_RANK, TYCHO_NUM_LOCAL_RANKS, TYCHO_ADDRESS,
/// TYCHO_PORT, TYCHO_TOKEN and, for rank 0, TYCHO_LISTENER_FD, as `tycho launch` sets them (TYCHO_NUM_RANKS=1
/// is one process alone); Slurm's, when srun started this process as one of several tasks; RANK, WORLD_SIZE,
/// MASTER_ADDR and their like; else one process alone. TYCHO_ADDRESS and TYCHO_PORT, each by itself, also win
/// over what Slurm or MASTER_ADDR say, and TYCHO_TOKEN is the token there too. A variable that is empty
/// counts as not set. Throws Error (kTopology) when variables are missing or contradict each other, naming
/// them, and for a token that is too short to be a secret.
RankPlace find_rank_place(const Environment& variable);

}  // namespace tycho
