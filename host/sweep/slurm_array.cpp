// Writes and submits batch scripts.
#include "host/sweep/slurm_array.h"

#include <algorithm>
#include <chrono>

#include "host/process/child_process.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/text/shell_words.h"

namespace tycho {
namespace {

/// Time before the limit at which Slurm sends its signal: enough for a save. Slurm may be a minute early.
constexpr int kWarningSeconds = 180;
constexpr auto kPatience = std::chrono::minutes(10);
constexpr size_t kMostBytes = size_t{64} << 10;
constexpr int kNotThere = 127;  // code of ChildProcess for a program that cannot be started

/// Returns "4h", "90m" or "1d" in minutes; Slurm's own format ("2-00:00:00") is returned unchanged.
std::string slurm_time(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[digits])) != 0 || text[digits] == '.'))
    ++digits;
  const std::string unit = text.substr(digits);
  if (digits == 0 || (unit != "h" && unit != "m" && unit != "d")) return text;
  const double minutes = std::stod(text.substr(0, digits)) * (unit == "h" ? 60 : unit == "d" ? 1440 : 1);
  return std::to_string(static_cast<int64_t>(minutes + 0.999));
}

int64_t num_tasks(const Board& board, int64_t max_running) {
  const auto open = std::count_if(board.trials().begin(), board.trials().end(),
                                  [](const Trial& trial) { return trial.is_open(); });
  return std::max<int64_t>(1, std::min<int64_t>(open, max_running));
}

}  // namespace

std::string slurm_script(const SweepFolder& folder, const SlurmArrayLaunch& launch,
                         const std::string& program) {
  const SweepDefinition& definition = folder.board().definition();
  std::string text = "#!/bin/bash\n";
  const auto option = [&](const std::string& line) { text += "#SBATCH " + line + "\n"; };
  option("--job-name=" + definition.name);
  option(
      fmt::format("--array=0-{}%{}", num_tasks(folder.board(), launch.max_running) - 1, launch.max_running));
  option(fmt::format("--nodes={}", launch.nodes));
  option(fmt::format("--ntasks-per-node={}", std::max<int64_t>(1, launch.gpus)));
  if (launch.gpus > 0) option(fmt::format("--gpus-per-node={}", launch.gpus));
  option("--time=" + slurm_time(launch.time));
  if (!launch.partition.empty()) option("--partition=" + launch.partition);
  if (!launch.account.empty()) option("--account=" + launch.account);
  option(launch.requeue ? "--requeue" : "--no-requeue");
  option("--open-mode=append");
  option(fmt::format("--signal=B:USR1@{}", kWarningSeconds));
  option("--output=" + folder.dir() + "/slurm-%A_%a.txt");
  for (const std::string& one : launch.options) option(one);
  text += fmt::format("cd {} || exit 15\n", shell_line({definition.folder}));
  // The batch shell gets the warning and passes it on; the worker lets its trials save and puts them back.
  text += shell_line({program, "sweep", "resume", folder.dir(), "--task"}) + " &\n";
  text +=
      "worker=$!\n"
      "trap 'kill -USR1 $worker' USR1\n"
      "trap 'kill -TERM $worker' TERM\n"
      "wait $worker; code=$?\n"
      "while kill -0 $worker 2>/dev/null; do wait $worker; code=$?; done\n";
  if (launch.requeue)
    text +=
        "task=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}\n"
        "# Not after scancel.\n"
        "may_continue() { scontrol show job \"$task\" | grep -qE 'JobState=RUNNING|Reason=TimeLimit'; }\n"
        "if [ $code -ge 128 ] && may_continue; then scontrol requeue \"$task\"; fi\n";
  return text + "exit $code\n";
}

std::string submit(const SweepFolder& folder, const std::string& script) {
  // Not in a folder that others may write to, where a file of this name could be theirs.
  const std::string file = folder.dir() + "/slurm.sbatch";
  write_file_atomically(real_files(), file, script);
  const std::optional<ChildAnswer> answer =
      ask_process({.argv = {"sbatch", "--parsable", file}}, kPatience, kMostBytes);
  if (!answer)
    fail(ExitCode::kTopology,
         "[sweep] sbatch did not answer within {} minutes; is the Slurm controller busy?", kPatience.count());
  std::string output = answer->output;
  while (!output.empty() && output.back() == '\n') output.pop_back();
  if (answer->end.code == kNotThere)
    fail(ExitCode::kTopology,
         "[sweep] sbatch is not installed here; `tycho sweep FILE --print` shows the script");
  if (answer->end.code != 0)
    fail(ExitCode::kTopology, "[sweep] sbatch failed: {}; `tycho sweep FILE --print` shows the script",
         output);
  return output.substr(0, output.find(';'));
}

}  // namespace tycho
