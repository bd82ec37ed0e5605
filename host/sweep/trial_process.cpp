// Starts and follows child processes.
#include "host/sweep/trial_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int kCannotStart = 127;  // as shells say it

/// In the child, between fork and exec: nothing that takes a lock.
[[noreturn]] void become(const TrialCommand& command, char* const* argv, pid_t parent) {
  setpgid(0, 0);  // Ctrl-C at the terminal is the worker's to pass on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotStart);  // it died before the line above
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
  const int output = open(command.output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int null = open("/dev/null", O_RDONLY);
  if (output < 0 || null < 0 || chdir(command.folder.c_str()) != 0) _exit(kCannotStart);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(argv[0], argv);
  _exit(kCannotStart);
}

}  // namespace

TrialProcess::TrialProcess(const TrialCommand& command) {
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  // The worker has one thread, so its environment may be changed around the fork.
  for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
  pid_ = fork();
  if (pid_ == 0) become(command, argv.data(), parent);
  for (const auto& [name, value] : command.environment) unsetenv(name.c_str());
  if (pid_ < 0) fail(ExitCode::kFailure, "[sweep] cannot start a process: {}", std::strerror(errno));
}

TrialProcess::~TrialProcess() {
  if (pid_ > 0) kill(pid_, SIGTERM);
}

std::optional<int> TrialProcess::poll() {
  int status = 0;
  if (pid_ < 0 || waitpid(pid_, &status, WNOHANG) != pid_) return {};
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void TrialProcess::stop() {
  if (pid_ > 0) kill(pid_, SIGTERM);
}

std::string this_program() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail(ExitCode::kFailure, "[sweep] cannot tell where this program lies: {}", error.message());
  return program.string();
}

}  // namespace tycho
