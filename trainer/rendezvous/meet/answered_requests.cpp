// The thread owns everything that it needs, because it is detached if a file system blocks it.
#include "trainer/rendezvous/meet/answered_requests.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

constexpr auto kLookForRequest = std::chrono::milliseconds(500);
constexpr auto kLastAnswer = std::chrono::milliseconds(2000);
constexpr auto kForever = std::chrono::hours(24);
constexpr off_t kLongestRequest = 64;

/// Takes the request out of the folder, removing its file. Returns "" if there is none, or it belongs to
/// another user.
std::string take_request(const std::string& folder) {
  if (folder.empty()) return "";
  const std::string path = folder + "/" + kCollectivesRequest;
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return "";
  const bool may_ask = info.st_uid == geteuid() || info.st_uid == 0;
  if (!S_ISREG(info.st_mode) || !may_ask || info.st_size > kLongestRequest) return "";
  std::string request = read_file(path);
  real_files().remove_file(path);
  return request;
}

}  // namespace

struct AnsweredRequests::State {
  std::shared_ptr<RecentCollectives> recent;
  PassOn pass_on;
  /// Held while a request is passed on, and by end(). `mutex` is not held then: a monitor calls answer() with
  /// a lock that pass_on takes.
  std::mutex passing;
  std::mutex mutex;
  std::condition_variable changed;
  std::string request;  // request to answer; "" for none
  bool ends = false, is_at_work = false;
};

AnsweredRequests::AnsweredRequests(std::shared_ptr<RecentCollectives> recent, PassOn pass_on)
    : state_(std::make_shared<State>()) {
  state_->recent = std::move(recent);
  state_->pass_on = std::move(pass_on);
  std::thread thread([state = state_] { run(state); });
  pthread_setname_np(thread.native_handle(), "tycho requests");
  thread.detach();
}

void AnsweredRequests::answer(const std::string& request) {
  const std::lock_guard lock(state_->mutex);
  state_->request = request;
  state_->changed.notify_all();
}

void AnsweredRequests::end() {
  {
    const std::scoped_lock both(state_->passing, state_->mutex);
    state_->ends = true;
  }
  std::unique_lock lock(state_->mutex);
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kLastAnswer, [&] { return !state_->is_at_work; });
}

void AnsweredRequests::run(const std::shared_ptr<State>& state) {
  const bool looks = state->pass_on != nullptr;
  std::unique_lock lock(state->mutex);
  while (!state->ends) {
    state->changed.wait_for(lock, looks ? kLookForRequest : kForever,
                            [&] { return state->ends || !state->request.empty(); });
    if (state->ends) return;
    std::string request = std::exchange(state->request, "");
    state->is_at_work = true;
    lock.unlock();
    try {
      if (looks && request.empty()) {
        request = take_request(state->recent->folder());
        const std::lock_guard passing(state->passing);
        if (!request.empty() && !state->ends) state->pass_on(request);
      }
      if (!request.empty()) state->recent->answer(request);
    } catch (const Error&) {  // the folder cannot be read or written: no file appears
    }
    lock.lock();
    state->is_at_work = false;
    state->changed.notify_all();
  }
}

}  // namespace tycho
