// Starts and follows child processes.
#include "host/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"

namespace tycho {
namespace {

constexpr int kCannotStart = 127;  // the code that shells use

/// Redirects in the child: stdin is empty, stdout and stderr go to `output`.
bool redirect(int output) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return output >= 0 && null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
         dup2(output, STDERR_FILENO) >= 0;
}

/// Becomes the program in the child, between fork and exec. Must not take a lock.
[[noreturn]] void become(const ChildCommand& command, char* const* argv, int output, pid_t parent) {
  if (command.own_group) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, command.orphan_signal);
  if (getppid() != parent) _exit(kCannotStart);  // it died before the line above
  // Handlers end with exec; what was ignored when this program started stays ignored in the child.
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int file : command.inherited) fcntl(file, F_SETFD, 0);
  if (output >= 0 && !redirect(output)) _exit(kCannotStart);
  if (!command.folder.empty() && chdir(command.folder.c_str()) != 0) _exit(kCannotStart);
  execvp(argv[0], argv);
  _exit(kCannotStart);
}

[[noreturn]] void fail_to_start(const ChildCommand& command) {
  fail(ExitCode::kFailure, "[process] cannot start {}: {}", command.argv[0], std::strerror(errno));
}

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command) : orphan_signal_(command.orphan_signal) {
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (command.is_piped && pipe2(ends, O_CLOEXEC) != 0) fail_to_start(command);
  if (!command.output.empty() && (ends[1] = open_to_append(command.output)) < 0)
    fail(ExitCode::kStorage, "[process] cannot write {}: {}", command.output, std::strerror(errno));
  const pid_t parent = getpid();
  // This process has one thread, so its environment may be changed around the fork.
  std::vector<std::pair<std::string, std::optional<std::string>>> before;
  for (const auto& [name, value] : command.environment) {
    const char* old = std::getenv(name.c_str());
    before.emplace_back(name, old != nullptr ? std::optional<std::string>(old) : std::nullopt);
    setenv(name.c_str(), value.c_str(), 1);
  }
  pid_ = fork();
  if (pid_ == 0) become(command, argv.data(), ends[1], parent);
  const int error = errno;
  for (const auto& [name, old] : before) old ? setenv(name.c_str(), old->c_str(), 1) : unsetenv(name.c_str());
  output_ = ends[0];
  if (ends[1] >= 0) close(ends[1]);
  if (pid_ < 0) {
    close_output();
    errno = error;
    fail_to_start(command);
  }
  if (output_ >= 0) fcntl(output_, F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  send(orphan_signal_);
  close_output();
}

void ChildProcess::close_output() {
  if (output_ >= 0) close(output_);
  output_ = -1;
}

std::optional<ChildEnd> ChildProcess::poll() {
  int status = 0;
  if (pid_ < 0 || waitpid(pid_, &status, WNOHANG) != pid_) return {};
  pid_ = -1;
  if (WIFEXITED(status)) return ChildEnd{WEXITSTATUS(status), 0};
  return ChildEnd{128 + WTERMSIG(status), WTERMSIG(status)};
}

void ChildProcess::send(int signal) {
  if (pid_ > 0) kill(pid_, signal);
}

std::optional<ChildAnswer> ask_process(ChildCommand command, std::chrono::milliseconds patience,
                                       size_t most) {
  using Clock = std::chrono::steady_clock;
  command.is_piped = true;
  command.orphan_signal = SIGKILL;
  ChildProcess child(command);
  const auto deadline = Clock::now() + patience;
  std::string said;
  std::array<char, 4096> buffer;
  for (pollfd out = {child.output(), POLLIN, 0}; Clock::now() < deadline && said.size() <= most;) {
    if (::poll(&out, 1, 100) <= 0) continue;
    const ssize_t count = read(out.fd, buffer.data(), buffer.size());
    if (count == 0) break;
    if (count > 0) said.append(buffer.data(), static_cast<size_t>(count));
  }
  while (said.size() <= most && Clock::now() < deadline) {
    if (const std::optional<ChildEnd> end = child.poll()) return ChildAnswer{*end, std::move(said)};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

std::string this_program() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    fail(ExitCode::kFailure, "[process] cannot find the location of this program: {}", error.message());
  return program.string();
}

}  // namespace tycho
