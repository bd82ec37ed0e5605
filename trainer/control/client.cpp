// The operator's end of the control channel.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/base/seconds_since.h"
#include "trainer/control/channel.h"
#include "trainer/control/socket_path.h"
#include "trainer/lock/owner.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::optional<Owner> owner_of(const std::string& run_dir) {
  const std::string path = run_dir + "/LOCK";
  if (!fs::is_regular_file(path)) return {};  // a pipe would keep us waiting
  const std::string lock = read_file(path);
  if (lock.ends_with("released\n") || lock.ends_with("released")) return {};
  return parse_owner(lock, path);
}

/// Returns true when a run that this machine's sockets do not reach may own the folder: its LOCK names
/// another machine, or a process on this one that runs.
bool may_run_elsewhere(const std::string& run_dir) {
  const std::optional<Owner> owner = owner_of(run_dir);
  return owner && (!same_machine(*owner) || process_state(*owner) == ProcessState::kRuns);
}

/// Creates `file` with a line, atomically. Returns false when it exists, or when another client, which has
/// the draft, is creating it.
bool write_line(const fs::path& draft, const fs::path& file, const std::string& code) {
  FileOps& files = real_files();
  std::error_code error;
  const auto is_there = [&](const fs::path& path) { return fs::exists(fs::symlink_status(path, error)); };
  if (is_there(file) || is_there(draft)) return false;
  std::unique_ptr<OutputFile> out;
  try {
    out = files.create(draft);
  } catch (const Error&) {
    if (is_there(draft)) return false;  // another client was faster
    throw;
  }
  if (is_there(file)) {  // made after the look above
    files.remove_file(draft);
    return false;
  }
  try {
    const std::string line = code + "\n";
    out->write(line.data(), line.size());
    out->close();
    files.rename(draft, file);
  } catch (const Error&) {
    fs::remove(draft, error);
    throw;
  }
  return true;
}

/// Writes a line as the next file and waits for the file that answers it.
ControlAnswer ask_by_file(const std::string& run_dir, const std::string& code, double timeout_s) {
  const fs::path dir = fs::path(run_dir) / "ctl";
  make_dirs(real_files(), dir);
  int number = 1;
  const auto path = [&](const char* ending) { return dir / fmt::format("{:03}.{}", number, ending); };
  while (!write_line(path("tmp"), path("lua"), code)) ++number;
  const auto start = Clock::now();
  while (!fs::exists(path("out"))) {
    if (seconds_since(start) > timeout_s || !may_run_elsewhere(run_dir))
      fail(ExitCode::kUnusable, "[control] {} was not answered; is {} still running?", path("lua").string(),
           run_dir);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::string text = read_file(path("out").string());
  if (text.ends_with('\n')) text.pop_back();
  constexpr std::string_view kError = "error: ";
  if (text.starts_with(kError)) return {false, text.substr(kError.size())};
  return {true, text};
}

}  // namespace

bool is_owned(const std::string& run_dir) {
  const std::optional<Owner> owner = owner_of(run_dir);
  return owner && (!same_machine(*owner) || process_state(*owner) != ProcessState::kGone);
}

struct ControlClient::State {
  std::string run_dir;
  int fd = -1;
};

ControlClient::ControlClient(const std::string& run_dir) : state_(std::make_unique<State>()) {
  state_->run_dir = run_dir;
  if (!fs::exists(fs::path(run_dir) / "recipe.json"))
    fail(ExitCode::kUsage, "[control] {} is not a run folder", run_dir);
  const SocketAddress where(run_dir);
  state_->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(state_->fd, reinterpret_cast<const sockaddr*>(&where.address()), sizeof(sockaddr_un)) == 0)
    return;
  const int why = errno;
  close(std::exchange(state_->fd, -1));
  if (why == EACCES || why == EPERM)
    fail(ExitCode::kUnusable, "[control] the run in {} belongs to another user", run_dir);
  if (!may_run_elsewhere(run_dir))
    fail(ExitCode::kUnusable, "[control] nothing runs in {}; `tycho ctl {} tail` shows its last lines",
         run_dir, run_dir);
}

ControlClient::~ControlClient() {
  if (state_->fd >= 0) close(state_->fd);
}

bool ControlClient::by_files() const { return state_->fd < 0; }

ControlAnswer ControlClient::ask(const std::string& code, bool may_command, double timeout_s) {
  if (by_files()) return ask_by_file(state_->run_dir, code, timeout_s);
  const std::string line = Json{{"code", code}, {"control", may_command}}.dump() + "\n";
  const timeval limit = {static_cast<time_t>(timeout_s), 0};
  setsockopt(state_->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (send(state_->fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    fail(ExitCode::kUnusable, "[control] the run in {} has ended", state_->run_dir);
  std::string reply;
  char c = 0;
  for (ssize_t n; (n = recv(state_->fd, &c, 1, 0)) != 0 && c != '\n';) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      fail(ExitCode::kUnusable, "[control] no answer from {}: {}", state_->run_dir, std::strerror(errno));
    reply += c;
  }
  const Json json = Json::parse(reply, nullptr, false);
  if (!json.is_object()) fail(ExitCode::kUnusable, "[control] the run in {} has ended", state_->run_dir);
  return {json.at("ok"), json.at("text")};
}

}  // namespace tycho
