// Loaded before a run by LD_PRELOAD: does harm at a chosen call of the file system.
//   TYCHO_FAULT="call=fsync,path=COMMIT.tmp,nth=2,do=kill,rank=1"
// call: open create write pwrite pread fsync rename mkdir unlink symlink. path: a part of the path.
// nth: of the calls that match, from 1. do: kill stop term int usr1 (a signal to this process before the
// call), eio enospc (the call fails, `times` times or, with 0, for ever), sleep (the call takes `ms` longer).
// rank: that of TYCHO_RANK; -1 for a process without one. When it strikes, it writes the monotonic clock's
// nanoseconds into the file that TYCHO_FAULT_MARK names.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

namespace {

std::map<std::string, std::string> parse(const char* text) {
  std::map<std::string, std::string> fields;
  std::string rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(','), equals = rest.find('=');
    if (equals != std::string::npos)
      fields[rest.substr(0, equals)] = rest.substr(equals + 1, comma - equals - 1);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return fields;
}

struct Fault {
  bool is_armed = false;
  std::string call, path, action;
  long nth = 1, times = 1, ms = 0;

  Fault() {
    auto fields = parse(getenv("TYCHO_FAULT"));
    const char* rank = getenv("TYCHO_RANK");
    is_armed = fields.contains("call") && strcmp(program_invocation_short_name, "tycho") == 0 &&
               fields["rank"] == (rank != nullptr ? rank : "-1");
    call = fields["call"], path = fields["path"], action = fields["do"];
    nth = std::max(1L, atol(fields["nth"].c_str()));
    if (fields.contains("times")) times = atol(fields["times"].c_str());
    ms = atol(fields["ms"].c_str());
  }
};

const Fault& fault() {
  static const Fault one;
  return one;
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

void leave_mark() {
  const char* path = getenv("TYCHO_FAULT_MARK");
  if (path == nullptr) return;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  char text[64];
  const int length =
      snprintf(text, sizeof text, "%lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
  const int fd =
      next<int(const char*, int, ...)>("open")(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (next<ssize_t(int, const void*, size_t)>("write")(fd, text, static_cast<size_t>(length)) < 0) abort();
  next<int(int)>("close")(fd);
}

/// Whether the call is to fail, with errno set.
bool strikes(const char* call, const char* path) {
  static std::atomic<long> seen{0};
  const Fault& f = fault();
  if (!f.is_armed || f.call != call || path == nullptr || strstr(path, f.path.c_str()) == nullptr)
    return false;
  const long number = ++seen;
  const bool fails = f.action == "eio" || f.action == "enospc";
  const bool is_due = fails ? number >= f.nth && (f.times == 0 || number < f.nth + f.times) : number == f.nth;
  if (!is_due) return false;
  if (number == f.nth) leave_mark();
  if (f.action == "sleep") usleep(static_cast<useconds_t>(f.ms) * 1000);
  if (f.action == "kill") kill(getpid(), SIGKILL);
  if (f.action == "stop") kill(getpid(), SIGSTOP);
  if (f.action == "term") kill(getpid(), SIGTERM);
  if (f.action == "int") kill(getpid(), SIGINT);
  if (f.action == "usr1") kill(getpid(), SIGUSR1);
  errno = f.action == "enospc" ? ENOSPC : EIO;
  return fails;
}

bool strikes(const char* call, int fd) {
  if (!fault().is_armed || fault().call != call) return false;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  const int before = errno;
  if (strikes(call, path)) return true;
  errno = before;
  return false;
}

int open_with(const char* name, const char* path, int flags, va_list rest) {
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  if (strikes((flags & O_CREAT) != 0 ? "create" : "open", path)) return -1;
  return next<int(const char*, int, ...)>(name)(path, flags, mode);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int fd = open_with("open", path, flags, rest);
  va_end(rest);
  return fd;
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int fd = open_with("open64", path, flags, rest);
  va_end(rest);
  return fd;
}

ssize_t write(int fd, const void* data, size_t count) {
  static auto* real = next<ssize_t(int, const void*, size_t)>("write");
  return strikes("write", fd) ? -1 : real(fd, data, count);
}

ssize_t pwrite(int fd, const void* data, size_t count, off_t offset) {
  static auto* real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return strikes("pwrite", fd) ? -1 : real(fd, data, count, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t count, off64_t offset) {
  static auto* real = next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return strikes("pwrite", fd) ? -1 : real(fd, data, count, offset);
}

int symlink(const char* target, const char* link) {
  return strikes("symlink", link) ? -1 : next<int(const char*, const char*)>("symlink")(target, link);
}

ssize_t pread(int fd, void* data, size_t count, off_t offset) {
  static auto* real = next<ssize_t(int, void*, size_t, off_t)>("pread");
  return strikes("pread", fd) ? -1 : real(fd, data, count, offset);
}

ssize_t pread64(int fd, void* data, size_t count, off64_t offset) {
  static auto* real = next<ssize_t(int, void*, size_t, off64_t)>("pread64");
  return strikes("pread", fd) ? -1 : real(fd, data, count, offset);
}

int fsync(int fd) {
  static auto* real = next<int(int)>("fsync");
  return strikes("fsync", fd) ? -1 : real(fd);
}

int rename(const char* from, const char* to) {
  return strikes("rename", to) ? -1 : next<int(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) {
  return strikes("mkdir", path) ? -1 : next<int(const char*, mode_t)>("mkdir")(path, mode);
}

int unlink(const char* path) { return strikes("unlink", path) ? -1 : next<int(const char*)>("unlink")(path); }

}  // extern "C"
#pragma GCC visibility pop
