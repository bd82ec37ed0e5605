// One thread sends; failures wait longer and longer, and are told once.
#include "trainer/loggers/wandb_online.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "trainer/base/as_error.h"

namespace tycho {
namespace {

double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

WandbOnline::WandbOnline(const WandbSettings& settings, const std::string& run_dir,
                         std::vector<std::string> files, const WandbPatience& patience)
    : patience_(patience),
      server_(settings, patience.timeout_s),
      upload_(server_, run_dir, std::move(files)),
      thread_([this] { work(); }) {}

WandbOnline::~WandbOnline() {
  cancel();
  thread_.join();
}

void WandbOnline::cancel() {
  server_.cancel();
  const std::lock_guard lock(mutex_);
  quits_ = true;
  changed_.notify_all();
}

std::string WandbOnline::end(const std::string& last_line) {
  std::unique_lock lock(mutex_);
  last_line_ = last_line;
  ends_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, std::chrono::duration<double>(patience_.end_s), [&] { return done_ || quits_; });
  if (done_) return "";
  return failure_.empty()
             ? fmt::format("{} did not take everything in {:g} s", server_.url(), patience_.end_s)
             : failure_;
}

std::string WandbOnline::news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, "");
}

void WandbOnline::send(bool is_last) {
  const int64_t before = upload_.num_sent_rows();
  upload_.send();
  if (const std::string refusal = upload_.take_refusal(); !refusal.empty()) {
    const std::lock_guard lock(mutex_);
    news_ = refusal + "; this is left out, and everything else is sent";
  }
  if (is_last) return upload_.end(last_line_);
  if (upload_.num_sent_rows() > before) beat_at_s_ = steady_s();
  if (steady_s() - beat_at_s_ < patience_.beat_s - patience_.every_s) return;
  upload_.beat();
  beat_at_s_ = steady_s();
}

// Called with the lock held.
double WandbOnline::wait_after(const Error& error) {
  constexpr int kFailuresToTell = 3;
  failure_ = error.what();
  const bool is_refused = error.code() == ExitCode::kUnusable;
  if ((++num_failures_ >= kFailuresToTell || is_refused) && !std::exchange(told_, true))
    news_ = fmt::format(
        "{}; the run continues, and what is missing there is sent as soon as possible, at the next start or "
        "by `tycho log sync RUN`",
        failure_);
  const double doubled = patience_.first_wait_s * static_cast<double>(1 << std::min(num_failures_ - 1, 12));
  const double own = is_refused ? patience_.refused_wait_s : std::min(doubled, patience_.longest_wait_s);
  return std::max(own, server_.wait_s());
}

void WandbOnline::work() {
  double wait_s = 0;
  bool is_last = false;
  std::unique_lock lock(mutex_);
  while (!quits_) {
    changed_.wait_for(lock, std::chrono::duration<double>(wait_s),
                      [&] { return quits_ || (ends_ && !is_last); });
    if (quits_) break;
    is_last = ends_;
    lock.unlock();
    std::optional<Error> failure;
    try {
      send(is_last);
    } catch (const std::exception& error) {
      failure = as_error(error, ExitCode::kStorage);
    }
    lock.lock();
    wait_s = failure ? wait_after(*failure) : patience_.every_s;
    quits_ = quits_ || (failure && is_last && failure->code() == ExitCode::kUnusable);
    if (failure) continue;
    num_failures_ = 0;
    told_ = false;
    failure_.clear();
    done_ = is_last;
    if (done_) break;
  }
  changed_.notify_all();
}

}  // namespace tycho
