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
  std::string address = "127.0.0.1";        // where rank 0 listens
  int port = 0;
  std::string job;     // tells jobs apart that meet at the same port; no secret: others can guess it
  std::string token;   // what only ranks of this job know; "" when they have yet to hand it over
  std::string source;  // "" alone, else for people: "tycho launch", "Slurm", "RANK and WORLD_SIZE"
};

/// The value of an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads the variables of this process when it is called.
Environment process_environment();

/// The first match wins: TYCHO_RANK, TYCHO_NUM_RANKS, TYCHO_LOCAL_RANK, TYCHO_NUM_LOCAL_RANKS, TYCHO_ADDRESS,
/// TYCHO_PORT and TYCHO_TOKEN, as `tycho launch` sets them (TYCHO_NUM_RANKS=1 is one process alone); Slurm's,
/// when srun started this process as one of several tasks; RANK, WORLD_SIZE, MASTER_ADDR and their like; else
/// one process alone. TYCHO_ADDRESS and TYCHO_PORT, each by itself, also win over what Slurm or MASTER_ADDR
/// say, and TYCHO_TOKEN is the token there too. A variable that is empty counts as not set. Throws Error
/// (kTopology) when variables are missing or contradict each other, naming them, and for a token that is too
/// short to be a secret.
RankPlace find_rank_place(const Environment& variable);

}  // namespace tycho
