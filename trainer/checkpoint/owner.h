// The identity of a process, as a LOCK records it of its owner. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tycho {

/// A process id alone is used again after a reboot, by a new process, and by another container.
struct Owner {
  std::string uuid;  // new for every lock taken
  int64_t epoch = 0;
  std::string host;
  std::string boot_id;        // changes when the machine restarts
  std::string pid_namespace;  // "pid:[4026531836]"
  int64_t pid = 0;
  int64_t start_ticks = 0;  // of the process, since boot
  std::string job;          // SLURM_JOB_ID, empty outside of Slurm
  int64_t restarts = 0;     // SLURM_RESTART_COUNT
};

/// This process, now, with a new uuid.
Owner this_process(int64_t epoch);

/// One line of JSON with a newline at its end.
std::string owner_line(const Owner& owner);
/// Reads the first line of a LOCK. Throws Error (kUnusable) when it is anything else.
Owner parse_owner(std::string_view lock_text, const std::string& place);

/// Whether this process can look up the owner's: same boot, same pid namespace.
bool same_machine(const Owner& owner);
enum class ProcessState { kGone, kStopped, kRuns };
/// The state of the process with that id and start time. Means something only on the same machine. kStopped
/// is one that was sent SIGSTOP and may go on at any time.
ProcessState process_state(const Owner& owner);
/// Whether we are a later start of the same Slurm job, which ends the earlier one.
bool is_later_start(const Owner& ours, const Owner& theirs);

/// For messages: "process 4711 on host n3, Slurm job 99 (restart 1)".
std::string describe(const Owner& owner);

}  // namespace tycho
