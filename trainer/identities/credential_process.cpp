// Output goes to files in memory, so that no pipe can fill up.
#include "trainer/identities/credential_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/http/answer_line.h"
#include "trainer/http/retry_wait.h"

namespace tycho {
namespace {

constexpr double kLongest_s = 60, kLook_s = 0.02;
constexpr size_t kMostOutput = 1 << 20;

/// A file without a name.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("tycho-output", MFD_CLOEXEC)) {
    if (descriptor_ < 0)
      fail(ExitCode::kUnusable, "[aws] cannot keep a command's output: {}", std::strerror(errno));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  int descriptor() const { return descriptor_; }
  std::string text() const {
    std::string text(kMostOutput, '\0');
    const ssize_t size = ::pread(descriptor_, text.data(), text.size(), 0);
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return text;
  }

 private:
  int descriptor_;
};

/// Starts a program. It gets the usual signals, whatever this thread blocks. Returns its id.
pid_t start(std::vector<std::string>& words, const MemoryFile& output, const MemoryFile& errors) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.descriptor(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    fail(ExitCode::kUnusable, "[aws] credential_process: cannot start {}: {}", words[0],
         std::strerror(error));
  return pid;
}

}  // namespace

std::vector<std::string> command_words(const std::string& command) {
  std::vector<std::string> words;
  bool inside = false;  // a word
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    const char next = i + 1 < command.size() ? command[i + 1] : 0;
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\' && next != 0 && (quote == 0 || (quote == '"' && (next == '"' || next == '\\')))) {
      words.back() += next;
      ++i;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0)
    fail(ExitCode::kUnusable, "[aws] credential_process: expected a closing {}, got the end of the command",
         quote);
  return words;
}

std::string output_of(const std::string& command, const std::stop_token& stop) {
  std::vector<std::string> words = command_words(command);
  if (words.empty()) fail(ExitCode::kUnusable, "[aws] credential_process: expected a command, got nothing");
  const MemoryFile output, errors;
  const pid_t pid = start(words, output, errors);
  const auto began = std::chrono::steady_clock::now();
  int status = 0;
  bool took_too_long = false;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    took_too_long = seconds_since(began) > kLongest_s;
    if (!took_too_long && wait_to_retry(kLook_s, stop)) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    break;
  }
  if (stop.stop_requested()) fail(ExitCode::kTerminated, "[aws] stopped while {} was running", words[0]);
  if (took_too_long)
    fail(ExitCode::kUnusable, "[aws] credential_process: expected credentials of {} within {} s, got none",
         words[0], kLongest_s);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail(ExitCode::kUnusable, "[aws] credential_process: expected credentials of {}, got {} {} ({})",
         words[0], WIFEXITED(status) ? "exit code" : "signal",
         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), answer_line(errors.text()));
  return output.text();
}

}  // namespace tycho
