// Works in a folder from a child process, and removes it from the parent.
#include "host/throw_away_folder.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "host/process/signal_queue.h"
#include "trainer/base/error.h"
#include "trainer/base/process/stop_signals.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    // For this process alone, whatever the umask says.
    if (mkdir(path_.c_str(), 0700) != 0)
      fail(ExitCode::kStorage, "[files] cannot create the folder {}: {}", path_, std::strerror(errno));
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

 private:
  std::string path_;
};

/// Waits for the child and passes signals on to it, except those of a terminal, which reach it directly.
int wait_for(pid_t child, SignalQueue& signals) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) != child) {
    pollfd file = {signals.file(), POLLIN, 0};
    poll(&file, 1, -1);
    while (const auto signal = signals.next())
      if (signal->ssi_signo != SIGCHLD && signal->ssi_code != SI_KERNEL)
        kill(child, static_cast<int>(signal->ssi_signo));
  }
  return status;
}

}  // namespace

int in_throw_away_folder(const std::string& path, bool owns, const std::function<int()>& body) {
  std::signal(SIGCHLD, SIG_DFL);  // the parent process may have ignored it
  std::vector<int> queued(kStopSignals.begin(), kStopSignals.end());
  queued.push_back(SIGCHLD);
  auto signals = std::make_optional<SignalQueue>(queued);
  std::optional<Folder> folder;
  if (owns) folder.emplace(path);
  std::fflush(stdout);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) fail(ExitCode::kFailure, "[process] cannot start another process: {}", std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(static_cast<int>(ExitCode::kFailure));
    for (const int number : kStopSignals)
      if (std::signal(number, SIG_DFL) == SIG_IGN) std::signal(number, SIG_IGN);
    signals.reset();
    return body();
  }
  const int status = wait_for(child, *signals);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (is_stop_code(128 + WTERMSIG(status))) return 128 + WTERMSIG(status);
  fail(ExitCode::kNumerics, "[process] the child process was killed by SIG{}{}",
       sigabbrev_np(WTERMSIG(status)),
       WTERMSIG(status) == SIGKILL ? ": memory may have run out; `dmesg` shows whether it did" : "");
}

}  // namespace tycho
