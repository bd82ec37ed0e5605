// Pipes and terminals are opened once more without blocking: a flag on the descriptor itself would be seen by
// every process that shares it.
#include "trainer/metrics/screen_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostKept = 1 << 20;
constexpr size_t kAtOnce = 4096;  // PIPE_BUF: poll() promises room for so much in a pipe
constexpr milliseconds kPatience{1000}, kLastPatience{2000}, kLook{100};

}  // namespace

ScreenWriter::ScreenWriter(int fd) : fd_(fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return;
  is_socket_ = S_ISSOCK(file.st_mode);
  may_wait_ = is_socket_ || S_ISFIFO(file.st_mode) || isatty(fd) != 0;
  if (!may_wait_ || is_socket_) return;
  own_ = open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

ScreenWriter::~ScreenWriter() {
  finish(kLastPatience);
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    eventfd_write(wake_, 1);
    thread_.join();
  }
  if (wake_ >= 0) close(wake_);
  if (own_ >= 0) close(own_);
}

/// Lets the thread write the kept text. Without one, a later call does.
void ScreenWriter::write_later() {
  if (kept_.empty()) return;
  if (wake_ < 0) wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return;
  eventfd_write(wake_, 1);
  if (thread_.joinable()) return;
  sigset_t all, before;  // signals go to the threads that handle them
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { write_kept_text(); });
  } catch (const std::system_error&) {  // the limit on threads
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Waits for the reader while text is kept, and for text while there is none.
void ScreenWriter::write_kept_text() {
  std::unique_lock lock(mutex_);
  bool pauses = false;  // poll() promised room and there was none
  while (!ends_) {
    const bool waits_for_reader = !kept_.empty() && !pauses;
    std::array<pollfd, 2> files = {pollfd{wake_, POLLIN, 0}, pollfd{fd_, POLLOUT, 0}};
    lock.unlock();
    poll(files.data(), waits_for_reader ? 2 : 1, pauses ? static_cast<int>(kLook.count()) : -1);
    eventfd_t ignored = 0;
    if (files[0].revents != 0) eventfd_read(wake_, &ignored);
    lock.lock();
    const size_t before = kept_.size();
    if (pauses || files[1].revents != 0) put_kept();
    pauses = files[1].revents != 0 && !kept_.empty() && kept_.size() == before;
  }
}

/// Writes as much as possible without waiting. Sets error_ to 0, to EAGAIN when the reader accepts no more
/// now, or to the error.
size_t ScreenWriter::put(std::string_view text) {
  error_ = 0;
  for (size_t done = 0; done < text.size();) {
    const std::string_view part = text.substr(done, may_wait_ ? kAtOnce : std::string_view::npos);
    const ssize_t n = put_part(part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_ = n == 0 || errno == EWOULDBLOCK ? EAGAIN : errno;
      return done;
    }
    done += static_cast<size_t>(n);
  }
  return text.size();
}

ssize_t ScreenWriter::put_part(std::string_view part) const {
  if (is_socket_) return send(fd_, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  // The terminal of another user cannot be opened again.
  if (may_wait_ && own_ < 0 && !wait(milliseconds(0))) return 0;
  return ::write(own_ >= 0 ? own_ : fd_, part.data(), part.size());
}

bool ScreenWriter::wait(milliseconds patience) const {
  pollfd file = {fd_, POLLOUT, 0};
  return poll(&file, 1, static_cast<int>(patience.count())) > 0;
}

/// Writes the kept text. Returns true when none is left.
bool ScreenWriter::put_kept() {
  if (!kept_.empty()) kept_.erase(0, put(kept_));
  if (error_ != EAGAIN) kept_.clear();
  if (kept_.empty()) is_stalled_ = false;
  return kept_.empty();
}

void ScreenWriter::drop(std::string_view text) {
  dropped_lines_ += std::count(text.begin(), text.end(), '\n');
  if (!text.empty()) in_dropped_line_ = text.back() != '\n';
}

/// Returns the text to write after lines were dropped: the rest after the line that was cut, below a note.
std::string ScreenWriter::after_dropped(std::string_view text) {
  if (in_dropped_line_) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    drop(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  if (dropped_lines_ == 0 || in_dropped_line_) return std::string(text);
  const std::string note = fmt::format("... {} line{} dropped here: nothing was reading this output\n",
                                       dropped_lines_, dropped_lines_ == 1 ? " was" : "s were");
  dropped_lines_ = 0;
  return note + std::string(text);
}

void ScreenWriter::print(std::string_view text) {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  put_kept();
  const auto begin = Clock::now();
  while (!has_room_for(text) && !is_stalled_) {
    wait(kLook);
    put_kept();
    if (Clock::now() - begin > kPatience) is_stalled_ = !kept_.empty();
  }
  if (!has_room_for(text)) return drop(text);
  const std::string shown = after_dropped(text);
  const size_t done = kept_.empty() ? put(shown) : 0;
  if (!kept_.empty() || error_ == EAGAIN) kept_.append(shown, done);
  write_later();
}

bool ScreenWriter::has_room_for(std::string_view text) const {
  return kept_.empty() || kept_.size() + text.size() <= kMostKept;
}

bool ScreenWriter::draw(std::string_view picture) {
  const std::lock_guard lock(mutex_);
  if (!put_kept()) return false;
  const size_t done = put(picture);
  if (done > 0 && error_ == EAGAIN) kept_.append(picture, done);
  write_later();
  return done > 0;
}

bool ScreenWriter::write_all(std::string_view text, const std::function<bool()>& gives_up) {
  const std::lock_guard lock(mutex_);
  kept_.append(text);
  while (!put_kept()) {
    if (gives_up != nullptr && gives_up()) return kept_.clear(), true;
    wait(kLook);
  }
  errno = error_;
  return error_ == 0;
}

void ScreenWriter::finish(milliseconds patience, const std::function<bool()>& gives_up) {
  const std::lock_guard lock(mutex_);
  for (auto since = Clock::now(); !kept_.empty();) {
    const size_t before = kept_.size();
    if (put_kept()) return;
    if (kept_.size() != before) since = Clock::now();
    if (Clock::now() - since >= patience || (gives_up != nullptr && gives_up())) return kept_.clear();
    wait(std::min(kLook, patience));
  }
}

}  // namespace tycho
