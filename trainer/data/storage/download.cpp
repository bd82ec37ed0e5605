// Retries, resumes, and the limit of a download's size.
#include "trainer/data/storage/download.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/http/retry_wait.h"

namespace tycho {
namespace {

constexpr double kLongestWait_s = 30;

using State = FetchOutcome::State;

[[noreturn]] void fail_write(const std::string& path, const char* when_full) {
  const int error = errno;
  fail(ExitCode::kStorage, "[data] cannot write {}: {}{}", path, std::strerror(error),
       error == ENOSPC || error == EDQUOT ? fmt::format("; {}", when_full) : "");
}

class FileSink final : public FetchSink {
 public:
  FileSink(DownloadTarget& target, std::string place, const char* when_full, const DownloadProgress& progress)
      : target_(target), place_(std::move(place)), when_full_(when_full), progress_(progress) {}

  void begin(int64_t offset) override {
    if (offset == target_.num_bytes) return;
    if (::ftruncate(target_.descriptor, offset) != 0) fail_write(target_.path, when_full_);
    if (progress_) progress_(offset - target_.num_bytes);
    target_.num_bytes = offset;
  }

  void write(const char* data, size_t num_bytes) override {
    if (std::cmp_greater(num_bytes, target_.most_bytes - target_.num_bytes))
      fail(ExitCode::kUnusable, "[data] {} is longer than the {} bytes {}", place_, target_.most_bytes,
           target_.who_says);
    for (size_t done = 0; done < num_bytes;) {
      const ssize_t n = ::pwrite(target_.descriptor, data + done, num_bytes - done, target_.num_bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_write(target_.path, when_full_);
      done += static_cast<size_t>(n), target_.num_bytes += n;
    }
    if (progress_) progress_(static_cast<int64_t>(num_bytes));
  }

 private:
  DownloadTarget& target_;
  std::string place_;
  const char* when_full_;
  const DownloadProgress& progress_;
};

[[noreturn]] void fail_stopped(const std::string& place) {
  fail(ExitCode::kTerminated, "[data] stopped while {} was fetched", place);
}

}  // namespace

bool download(RemoteFiles& files, const std::string& name, DownloadTarget& target,
              const DownloadPolicy& policy, const std::stop_token& stop, const DownloadProgress& progress) {
  const std::string place = files.place_of(name);
  FileSink sink(target, place, policy.when_full, progress);
  const auto start = std::chrono::steady_clock::now();
  std::string version;
  int64_t tries_left = policy.retries, furthest = target.num_bytes;
  double next_wait_s = policy.first_wait_s;
  while (true) {
    const FetchOutcome outcome = files.fetch(name, {target.num_bytes, version, policy.timeout_s, stop}, sink);
    if (outcome.state == State::kDone) return true;
    if (outcome.state == State::kAbsent) return false;
    if (outcome.state == State::kStopped) fail_stopped(place);
    if (outcome.state == State::kRefused)
      fail(ExitCode::kUnusable, "[data] cannot fetch {}: {}", place, outcome.problem);
    if (!outcome.version.empty()) version = outcome.version;
    // Progress restores the number of tries: a long file over a bad connection needs many.
    if (target.num_bytes > furthest + (1 << 20))
      tries_left = policy.retries, next_wait_s = policy.first_wait_s;
    furthest = std::max(furthest, target.num_bytes);
    if (tries_left-- <= 0) {
      const double took_s = seconds_since(start);
      fail(ExitCode::kUnusable,
           "[data] cannot fetch {}: {} ({} tries in {:.0f} s). Start the run again when the server answers; "
           "{}",
           place, outcome.problem, policy.retries + 1, took_s, policy.when_no_answer);
    }
    if (!wait_to_retry(std::max(with_jitter(next_wait_s), std::min(outcome.wait_s, 2 * kLongestWait_s)),
                       stop))
      fail_stopped(place);
    next_wait_s = std::min(2 * next_wait_s, kLongestWait_s);
  }
}

}  // namespace tycho
