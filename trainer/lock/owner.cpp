// Reads the identity of this process from /proc, and whether another one is still alive.
#include "trainer/lock/owner.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/host_name.h"
#include "trainer/base/json.h"
#include "trainer/base/random/random_bytes.h"

namespace tycho {
namespace {

constexpr size_t kMaxLineBytes = 4096;

std::string boot_id() {
  std::string text = read_file("/proc/sys/kernel/random/boot_id");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string pid_namespace() {
  std::array<char, 256> name{};
  return ::readlink("/proc/self/ns/pid", name.data(), name.size() - 1) > 0 ? name.data() : "unknown";
}

struct ProcessStat {
  char state = 'X';  // letter in /proc; X for none
  int64_t start_ticks = -1;
};

ProcessStat read_stat(int64_t pid) {
  std::string text;
  try {
    text = read_file(fmt::format("/proc/{}/stat", pid));
  } catch (const Error&) {
    return {};
  }
  // The name in parentheses may hold anything, spaces and parentheses too.
  const size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return {};
  std::istringstream fields(text.substr(after_name + 1));
  ProcessStat stat;
  fields >> stat.state;
  constexpr int kFieldsBetween = 18;  // state is the third, start time the 22nd
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> stat.start_ticks;
  return stat;
}

}  // namespace

Owner this_process(int64_t epoch) {
  return {.uuid = random_hex(16),
          .epoch = epoch,
          .host = host_name(),
          .boot_id = boot_id(),
          .pid_namespace = pid_namespace(),
          .pid = ::getpid(),
          .start_ticks = read_stat(::getpid()).start_ticks,
          .job = environment_variable("SLURM_JOB_ID"),
          .restarts = std::strtoll(environment_variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10)};
}

std::string owner_line(const Owner& owner) {
  const Json json = {{"uuid", owner.uuid},
                     {"epoch", owner.epoch},
                     {"host", owner.host},
                     {"boot_id", owner.boot_id},
                     {"pid_namespace", owner.pid_namespace},
                     {"pid", owner.pid},
                     {"start_ticks", owner.start_ticks},
                     {"job", owner.job},
                     {"restarts", owner.restarts}};
  return canonical_json(json) + "\n";
}

Owner parse_owner(std::string_view lock_text, const std::string& place) {
  const size_t end = lock_text.find('\n');
  if (end == std::string_view::npos || end > kMaxLineBytes) {
    fail(ExitCode::kUnusable, "[lock] {} does not begin with a line that names its owner", place);
  }
  const Json json = parse_json(lock_text.substr(0, end), place);
  const auto text = [&](const char* key) { return json.at(key).get<std::string>(); };
  const auto count = [&](const char* key) {
    const Json& value = json.at(key);
    const bool whole = value.is_number_unsigned() && value.get<uint64_t>() < uint64_t{1} << 53;
    if (!whole) fail(ExitCode::kUnusable, "[lock] {}: '{}' is not a count", place, key);
    return value.get<int64_t>();
  };
  try {
    return {.uuid = text("uuid"),
            .epoch = count("epoch"),
            .host = text("host"),
            .boot_id = text("boot_id"),
            .pid_namespace = text("pid_namespace"),
            .pid = count("pid"),
            .start_ticks = count("start_ticks"),
            .job = text("job"),
            .restarts = count("restarts")};
  } catch (const Json::exception& error) {
    fail(ExitCode::kUnusable, "[lock] {} does not name its owner: {}", place, error.what());
  }
}

bool same_machine(const Owner& owner) {
  return owner.boot_id == boot_id() && owner.pid_namespace == pid_namespace();
}

ProcessState process_state(const Owner& owner) {
  const ProcessStat stat = read_stat(owner.pid);
  if (stat.start_ticks != owner.start_ticks || stat.state == 'X' || stat.state == 'Z')
    return ProcessState::kGone;
  return stat.state == 'T' || stat.state == 't' ? ProcessState::kStopped : ProcessState::kRuns;
}

bool is_later_start(const Owner& ours, const Owner& theirs) {
  return !ours.job.empty() && ours.job == theirs.job && ours.restarts > theirs.restarts;
}

std::string describe(const Owner& owner) {
  std::string text = fmt::format("process {} on host {}", owner.pid, owner.host);
  if (!owner.job.empty()) text += fmt::format(", Slurm job {} (restart {})", owner.job, owner.restarts);
  return text;
}

}  // namespace tycho
