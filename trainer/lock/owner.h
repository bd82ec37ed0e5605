// The identity of a process, as a LOCK records it of its owner. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tycho {

/// Identity of a process. A process id alone is reused: after a reboot, by a new process, in another
/// container.
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

/// Describes this process, with a new uuid.
Owner this_process(int64_t epoch);

/// Returns one line of JSON that ends in a newline.
std::string owner_line(const Owner& owner);
/// Reads the first line of a LOCK. Throws Error (kUnusable) when it is anything else.
Owner parse_owner(std::string_view lock_text, const std::string& place);

/// Returns true when this process can look up the owner's process: same boot, same pid namespace.
bool same_machine(const Owner& owner);
enum class ProcessState { kGone, kStopped, kRuns };
/// Returns the state of the process with that id and start time. Valid only on the same machine. kStopped
/// means that it received SIGSTOP and may continue at any time.
ProcessState process_state(const Owner& owner);
/// Returns true when `ours` is a later start of the same Slurm job, which ends the earlier one.
bool is_later_start(const Owner& ours, const Owner& theirs);

/// Returns a text for messages: "process 4711 on host n3, Slurm job 99 (restart 1)".
std::string describe(const Owner& owner);

}  // namespace tycho
