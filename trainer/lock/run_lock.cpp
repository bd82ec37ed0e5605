// Takes LOCK by an exclusive claim, renews its heartbeat, and notices when it is lost.
#include "trainer/lock/run_lock.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/lock/owner.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// A claim is made by few processes at once; each round ends with one of them as the owner.
constexpr int kMaxRounds = 100;
constexpr int64_t kOftenNs = 500'000'000;

/// Returns a clock that continues while the process, or the machine, is stopped.
int64_t boot_time_ns() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Returns the word of messages for something that is not a file.
const char* kind_of(std::filesystem::file_type type) {
  switch (type) {
    case std::filesystem::file_type::directory: return "a folder";
    case std::filesystem::file_type::symlink: return "a link";
    default: return "a pipe or device";
  }
}

enum class Verdict { kFree, kAlive, kUnknown };

/// Returns the file's text; nullopt when it does not exist.
std::optional<std::string> read_if_there(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return {};
  // Reading a pipe would wait for somebody who writes to it, and a link leads to a file of somebody else.
  if (!error && status.type() != std::filesystem::file_type::regular)
    fail(ExitCode::kUnusable,
         "[lock] expected {} to be a file, found {}. Remove it, or use another folder for this run with "
         "run_dir=PATH",
         path, kind_of(status.type()));
  try {
    return read_file(path);
  } catch (const Error&) {
    if (!std::filesystem::exists(path, error) && !error) return {};
    throw;
  }
}

std::optional<Owner> owner_in(const std::string& text, const std::string& path) {
  try {
    return parse_owner(text, path);
  } catch (const Error&) {
    return {};  // half written or damaged: only time tells
  }
}

Verdict judge(const std::string& text, const std::optional<Owner>& owner, const Owner& ours) {
  if (text.ends_with(RunLock::kReleased)) return Verdict::kFree;
  if (!owner) return Verdict::kUnknown;
  if (is_later_start(ours, *owner)) return Verdict::kFree;
  if (!same_machine(*owner)) return Verdict::kUnknown;
  switch (process_state(*owner)) {
    case ProcessState::kGone: return Verdict::kFree;
    case ProcessState::kRuns: return Verdict::kAlive;
    case ProcessState::kStopped: break;
  }
  return Verdict::kUnknown;
}

[[noreturn]] void fail_owned(const std::string& path, const std::optional<Owner>& owner) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!owner)
    fail(ExitCode::kFolderOwned, "[lock] {} is being taken by another run: use another folder", folder);
  const std::string stop = owner->job.empty() ? fmt::format("kill {} on {}", owner->pid, owner->host)
                                              : fmt::format("scancel {}", owner->job);
  fail(ExitCode::kFolderOwned,
       "[lock] {} belongs to a run that is alive: {}. Wait until it ends, stop it ({}), or use another "
       "folder for this run. If it is certainly gone, remove {}",
       folder, describe(*owner), stop, path);
}

/// Returns the reason for waiting for a silent owner.
std::string waiting_text(const std::string& path, const std::optional<Owner>& owner, double stale_s) {
  const std::string why = owner ? fmt::format("names {}, which cannot be checked from here", describe(*owner))
                                : std::string("is damaged or half written");
  return fmt::format("[lock] {} {}: taking the folder if the file does not change for {:.0f} s", path, why,
                     stale_s);
}

/// Returns the text of LOCK (or of a claim) once its owner is known to be gone; nullopt when the file was
/// removed. Throws when the owner is alive.
std::optional<std::string> wait_until_free(const std::string& path, const Owner& ours, double stale_s,
                                           const RunLock::Waiting& waiting) {
  std::optional<std::string> text = read_if_there(path);
  std::optional<Owner> owner;
  Clock::time_point unchanged_since = Clock::now();
  if (text) owner = owner_in(*text, path);
  while (text) {
    const Verdict verdict = judge(*text, owner, ours);
    if (verdict == Verdict::kFree || Seconds(Clock::now() - unchanged_since).count() >= stale_s) return text;
    if (verdict == Verdict::kAlive) fail_owned(path, owner);
    if (waiting) waiting(waiting_text(path, owner, stale_s));
    std::this_thread::sleep_for(Seconds(std::min(1.0, stale_s / 20)));
    std::optional<std::string> now = read_if_there(path);
    if (now == text) continue;
    const std::optional<Owner> new_owner = now ? owner_in(*now, path) : std::nullopt;
    const bool heartbeat = owner && new_owner && owner->uuid == new_owner->uuid;
    if (heartbeat && !now->ends_with(RunLock::kReleased)) fail_owned(path, owner);
    text = std::move(now);
    owner = new_owner;
    unchanged_since = Clock::now();
  }
  return text;
}

}  // namespace

struct RunLock::State {
  FileOps& files;
  std::string run_dir, path;
  double stale_s;
  Waiting waiting;
  NewestEpoch newest_epoch;
  Owner owner = {};
  std::string line = {};
  std::unique_ptr<OutputFile> file = {};
  std::mutex mutex = {};
  std::condition_variable changed = {};
  bool stopped = false;
  std::atomic<int64_t> checked_ns = 0;  // time of the last look by check_often()
  std::thread thread = {};

  /// Tries once to become the owner. Returns false when another process was faster and everything must be
  /// read again.
  bool take() {
    const std::optional<std::string> seen = wait_until_free(path, owner, stale_s, waiting);
    const std::optional<Owner> last = seen ? owner_in(*seen, path) : std::nullopt;
    owner.epoch = 1 + std::max(last ? last->epoch : 0, newest_epoch ? newest_epoch() : 0);
    line = owner_line(owner);
    const std::string claim = fmt::format("{}.epoch-{}", path, owner.epoch);
    if (!create_claim(claim, seen)) return false;
    // Whoever was slower finds a LOCK that is not the one it judged.
    if (read_if_there(path) != seen) {
      file.reset();
      files.remove_file(claim);
      return false;
    }
    files.rename(claim, path);
    files.sync_dir(run_dir);
    // Two that remove the claim of a dead process can mix theirs up: the file tells who won.
    const std::optional<std::string> result = read_if_there(path);
    return result && result->starts_with(line);
  }

  /// Returns false when another process holds the claim, or held it and died: the claim is then removed.
  bool create_claim(const std::string& claim, const std::optional<std::string>& seen) {
    try {
      file = files.create(claim);
    } catch (const Error&) {
      if (!std::filesystem::exists(claim) && read_if_there(path) == seen) throw;
      if (wait_until_free(claim, owner, stale_s, waiting)) files.remove_file(claim);
      return false;
    }
    try {
      file->write(line.data(), line.size());
      file->sync();
    } catch (const Error&) {
      remove_quietly(claim);
      throw;
    }
    return true;
  }

  void remove_quietly(const std::string& claim) {
    try {
      files.remove_file(claim);
    } catch (const Error&) {
      // It names no live owner, so the next start removes it.
    }
  }

  void beat() {
    std::unique_lock lock(mutex);
    const Seconds interval(stale_s / 12);
    while (!changed.wait_for(lock, interval, [this] { return stopped; })) {
      try {
        file->write(".", 1);
      } catch (const Error&) {
        continue;  // a full disk may have room again before we count as gone
      }
      try {
        file->sync();
      } catch (const Error&) {
        return;  // this file is dead; check() says whether somebody took over
      }
    }
  }
};

RunLock::RunLock(FileOps& files, const std::string& run_dir, double stale_s, Waiting waiting,
                 NewestEpoch newest_epoch)
    : state_(new State{.files = files,
                       .run_dir = run_dir,
                       .path = run_dir + "/LOCK",
                       .stale_s = stale_s,
                       .waiting = std::move(waiting),
                       .newest_epoch = std::move(newest_epoch)}) {
  make_dirs(files, run_dir);
  state_->owner = this_process(0);
  int round = 0;
  while (!state_->take()) {
    if (++round == kMaxRounds) fail_owned(state_->path, {});
  }
  state_->thread = std::thread([state = state_.get()] { state->beat(); });
}

RunLock::~RunLock() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
  try {
    state_->file->write(kReleased.data(), kReleased.size());
    state_->file->close();
  } catch (...) {
    // Without the mark the next owner finds out by itself.
  }
}

std::string uuid_of_owner(const std::string& run_dir) {
  const std::string path = run_dir + "/LOCK";
  std::error_code error;
  if (std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::regular) return "";
  const std::optional<Owner> owner = owner_in(read_file(path), path);
  return owner ? owner->uuid : "";
}

bool names_owner(const std::string& run_dir) { return !uuid_of_owner(run_dir).empty(); }

void RunLock::check_often() const {
  const int64_t now_ns = boot_time_ns();
  if (now_ns - state_->checked_ns < kOftenNs) return;
  try {
    check();
  } catch (const Error& error) {
    if (error.code() == ExitCode::kFolderOwned) throw;
  }
  state_->checked_ns = now_ns;
}

int64_t RunLock::epoch() const { return state_->owner.epoch; }

const std::string& RunLock::uuid() const { return state_->owner.uuid; }

void RunLock::check() const {
  std::optional<std::string> text;
  try {
    text = read_if_there(state_->path);
  } catch (const Error& error) {
    fail(ExitCode::kStorage, "[lock] cannot determine who owns {}: {}", state_->run_dir, error.what());
  }
  if (text && text->starts_with(state_->line)) return;
  const std::optional<Owner> other = text ? owner_in(*text, state_->path) : std::nullopt;
  fail(ExitCode::kFolderOwned,
       "[lock] {} no longer belongs to this run: {}. This run stops and writes nothing more; resume from the "
       "checkpoints of the run that took over",
       state_->run_dir, other ? "taken over by " + describe(*other) : "its LOCK was removed");
}

}  // namespace tycho
