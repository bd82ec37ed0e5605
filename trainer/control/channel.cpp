// Polls the socket and the ctl folder without a thread of its own.
#include "trainer/control/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/control/socket_path.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr size_t kLongestLine = 1 << 16;
constexpr size_t kMostClients = 16;

std::string user_name(uid_t uid) {
  const passwd* user = getpwuid(uid);
  return user != nullptr ? user->pw_name : fmt::format("uid {}", uid);
}

bool may_speak(uid_t uid) { return uid == geteuid() || uid == 0; }

/// Returns the user at the other end of a connection.
uid_t peer_of(int fd) {
  ucred who = {};
  socklen_t size = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.uid : static_cast<uid_t>(-1);
}

/// Returns the identity of the socket's file; nullopt when there is none. A successor's socket has the same
/// name.
std::optional<std::pair<dev_t, ino_t>> file_at(const SocketAddress& where) {
  struct stat info = {};
  if (lstat(where.path(), &info) != 0) return {};
  return std::pair(info.st_dev, info.st_ino);
}

int listen_at(const SocketAddress& where) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  unlink(where.path());  // of a run that was killed; the folder is ours
  const mode_t before = umask(0177);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&where.address()), sizeof(sockaddr_un)) == 0;
  umask(before);
  if (bound && listen(fd, 8) == 0) return fd;
  close(fd);
  return -1;
}

/// Returns the text of a file written by a permitted user, and the user; nullopt for a link, a pipe or a long
/// file.
std::optional<std::string> line_in(const fs::path& file, uid_t& writer) {
  const int fd = open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {};
  struct stat info = {};
  std::optional<std::string> text;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && may_speak(info.st_uid)) {
    std::string buffer(kLongestLine + 1, '\0');
    size_t filled = 0;
    for (ssize_t n;
         filled < buffer.size() && (n = read(fd, buffer.data() + filled, buffer.size() - filled)) > 0;)
      filled += static_cast<size_t>(n);
    if (filled <= kLongestLine) text = buffer.substr(0, filled);
    writer = info.st_uid;
  }
  close(fd);
  return text;
}

/// Parses a line of the protocol. Returns false when it is none.
bool parse_line(const std::string& text, OperatorLine& line) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.value("code", Json()).is_string()) return false;
  line.code = json.at("code");
  line.may_command = json.value("control", Json()) == Json(true);
  return true;
}

}  // namespace

struct ControlChannel::State {
  std::string run_dir;
  std::unique_ptr<SocketAddress> where;
  int listener = -1;
  std::optional<std::pair<dev_t, ino_t>> socket_file = {};
  std::map<int, std::string> clients;  // connection -> incomplete line
  timespec seen_files = {};            // when the folder of files was changed last

  void accept_all() {
    for (int fd; (fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
      if (may_speak(peer_of(fd)) && clients.size() < kMostClients)
        clients.emplace(fd, "");
      else
        close(fd);
    }
  }

  void drop(int fd) {
    close(fd);
    clients.erase(fd);
  }

  /// Reads complete lines of one connection; drops it when it has ended.
  void read_client(int fd, std::vector<OperatorLine>& lines) {
    std::string& said = clients.at(fd);
    char buffer[4096];
    ssize_t n = 0;
    while (said.size() <= kLongestLine && (n = recv(fd, buffer, sizeof buffer, 0)) > 0)
      said.append(buffer, static_cast<size_t>(n));
    if (said.size() > kLongestLine) return drop(fd);
    const bool ended = n == 0 || (errno != EAGAIN && errno != EINTR);
    for (size_t end; (end = said.find('\n')) != std::string::npos; said.erase(0, end + 1)) {
      OperatorLine line;
      line.client = fd;
      line.by = user_name(peer_of(fd)) + " (attach)";
      if (!parse_line(said.substr(0, end), line)) return drop(fd);
      lines.push_back(std::move(line));
    }
    if (ended) drop(fd);
  }

  void read_files(std::vector<OperatorLine>& lines) {
    const std::string dir = run_dir + "/ctl";
    struct stat info = {};
    if (stat(dir.c_str(), &info) != 0) return;
    if (info.st_mtim.tv_sec == seen_files.tv_sec && info.st_mtim.tv_nsec == seen_files.tv_nsec) return;
    seen_files = info.st_mtim;
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(dir, error))
      if (entry.path().extension() == ".lua") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::string answer = fs::path(file).replace_extension(".out").string();
      if (fs::exists(answer)) continue;
      uid_t writer = 0;
      const std::optional<std::string> said = line_in(file, writer);
      if (said)
        lines.push_back({*said, true, user_name(writer) + " (" + file.filename().string() + ")", -1, answer});
    }
  }
};

ControlChannel::ControlChannel(const std::string& run_dir, std::string* warning)
    : state_(std::make_unique<State>()) {
  state_->run_dir = run_dir;
  state_->where = std::make_unique<SocketAddress>(run_dir);
  state_->listener = listen_at(*state_->where);
  if (state_->listener >= 0) state_->socket_file = file_at(*state_->where);
  if (state_->listener < 0 && warning != nullptr)
    *warning = fmt::format("no socket in {}: {}; commands are read from files: {}/ctl/001.lua", run_dir,
                           std::strerror(errno), run_dir);
  // Files of an earlier process were answered or are out of date.
  std::vector<OperatorLine> stale;
  state_->read_files(stale);
  for (const OperatorLine& line : stale) answer(line, false, "the run ended before it read this");
}

ControlChannel::~ControlChannel() {
  for (const auto& [fd, said] : state_->clients) close(fd);
  if (state_->listener < 0) return;
  // A process that was stopped may have lost the folder to another one. While ours is open, nobody's file has
  // its number.
  if (file_at(*state_->where) == state_->socket_file) unlink(state_->where->path());
  close(state_->listener);
}

std::vector<OperatorLine> ControlChannel::poll(int timeout_ms) {
  std::vector<pollfd> watched;
  if (state_->listener >= 0) watched.push_back({state_->listener, POLLIN, 0});
  for (const auto& [fd, said] : state_->clients) watched.push_back({fd, POLLIN, 0});
  std::vector<OperatorLine> lines;
  state_->read_files(lines);
  if (::poll(watched.data(), watched.size(), lines.empty() ? timeout_ms : 0) <= 0) return lines;
  for (const pollfd& one : watched)
    if (one.revents != 0 && one.fd != state_->listener) state_->read_client(one.fd, lines);
  if (state_->listener >= 0) state_->accept_all();
  return lines;
}

void ControlChannel::answer(const OperatorLine& line, bool ok, const std::string& text) {
  const std::string shown = without_secrets(text);
  if (line.client < 0) {
    try {
      write_file_atomically(real_files(), line.answer_file, (ok ? "" : "error: ") + shown + "\n");
    } catch (const Error&) {
      // A full disk or a folder that is gone costs the answer, not the run.
    }
    return;
  }
  if (!state_->clients.contains(line.client)) return;
  const std::string reply =
      Json{{"ok", ok}, {"text", shown}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  // One that does not read its answers is not waited for.
  if (send(line.client, reply.data(), reply.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(reply.size()))
    state_->drop(line.client);
}

}  // namespace tycho
