// The thread's loop, and the calls of other threads.
#include "trainer/rendezvous/meet/monitor.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/secrets.h"

namespace tycho {
namespace {

constexpr auto kNews = std::chrono::milliseconds(3000);    // for rank 0 to say why the world is broken
constexpr auto kHeard = std::chrono::milliseconds(2000);   // for the others to hear why
constexpr auto kAnswer = std::chrono::milliseconds(2000);  // about a mark
constexpr auto kFarewell = std::chrono::milliseconds(1000);

Socket event_counter() { return Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

}  // namespace

Monitor::Monitor(const RankInfo& place, MeetOptions options, Member self)
    : place_(place),
      options_(std::move(options)),
      self_(std::move(self)),
      roster_(place.num_ranks, self_),
      wake_(event_counter()),
      broken_(event_counter()) {}

void Monitor::begin() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "tycho monitor");
}

void Monitor::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake();
  thread_.join();
}

void Monitor::wake() { eventfd_write(wake_.fd(), 1); }

void Monitor::run() {
  std::unique_lock lock(mutex_);
  auto next_beat = Clock::now();
  std::optional<Clock::time_point> last_moment;
  while (true) {
    const auto now = Clock::now();
    if (now >= next_beat) {
      beat();
      next_beat =
          now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.beat_s));
    }
    obey();
    if (ends_) {
      // Passing on a cause may take a little longer than a goodbye.
      if (!last_moment) last_moment = now + (cause_ ? kHeard : kFarewell);
      if (may_end() || now >= *last_moment) return;
    }
    std::vector<pollfd> files = {{wake_.fd(), POLLIN, 0}};
    std::vector<ControlLine*> polled = lines();
    for (const ControlLine* line : polled)
      files.push_back({line->fd(), static_cast<short>(POLLIN | (line->has_unsent() ? POLLOUT : 0)), 0});
    auto until = std::min(next_beat, next());
    if (last_moment) until = std::min(until, *last_moment);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    lock.unlock();
    poll(files.data(), files.size(), static_cast<int>(std::max<int64_t>(left, 0)));
    lock.lock();
    eventfd_t ignored = 0;
    if (files[0].revents != 0) eventfd_read(wake_.fd(), &ignored);
    for (size_t i = 0; i < polled.size(); ++i) {
      if ((files[i + 1].revents & POLLOUT) != 0) polled[i]->flush();
      if ((files[i + 1].revents & ~POLLOUT) != 0) serve(*polled[i]);
    }
    changed_.notify_all();
  }
}

void Monitor::write_line(const std::string& line) {
  pollfd file = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&file, 1, 100) > 0 && (file.revents & POLLOUT) != 0) {
    const ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(ignored);
  }
}

void Monitor::beat() {
  const ProgressReport own = options_.progress->report();
  roster_.set_report(place_.rank, own);
  for (ControlLine* line : lines()) line->say(ControlMessage::kBeat, bytes_of(own));
  tick();
  if (!ends_ && roster_.has_one_ended_for(options_.goodbye_s)) signal_broken();
  end_process_if_stuck();
}

/// Number of beats of this process that may pass without one of another. Beats are counted instead of
/// measuring time, because this process may have been stopped itself.
int Monitor::num_silent_beats() const {
  return std::max(1, static_cast<int>(std::ceil(options_.silence_s / options_.beat_s)));
}

/// Ends the process if the main thread is stuck. A main thread that saves has longer, and after the save as
/// long as any other.
void Monitor::end_process_if_stuck() {
  if (!cause_ || ends_ || options_.end_s <= 0 || options_.progress->is_prompt()) return;
  const auto now = Clock::now();
  const ProgressReport doing = options_.progress->report();
  const bool saves = is_saving(doing.phase);
  if (saves) saved_at_ = now;
  const auto begin = saves || !saved_at_ ? broken_at_ : *saved_at_;
  const double limit_s = saves ? options_.save_s : options_.end_s;
  if (now - begin < std::chrono::duration<double>(limit_s)) return;
  const int code = static_cast<int>(cause_->code);
  write_line(fmt::format(
      "[ranks] rank {} did not {} within {:g} s after {} ({}); it ends now with exit code {}. "
      "Why the run broke: {}\n",
      place_.rank, saves ? "finish its save" : "end", limit_s,
      begin == broken_at_ ? "the run broke" : "its save", progress_text(doing), code, cause_->text));
  broken_at_ = now;  // in tests the process continues
  saved_at_.reset();
  if (options_.before_end) options_.before_end(Error(cause_->text, cause_->code));
  if (options_.end_process)
    options_.end_process(code);
  else
    _exit(code);
}

void Monitor::set_cause(Cause cause) {
  if (cause_) return;
  cause_ = std::move(cause);
  broken_at_ = Clock::now();
  signal_broken();
  on_broken();
  changed_.notify_all();
}

void Monitor::signal_broken() {
  if (!is_broken_.exchange(true)) eventfd_write(broken_.fd(), 1);
}

std::optional<Cause> Monitor::cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

std::vector<Member> Monitor::members() const {
  const std::lock_guard lock(mutex_);
  std::vector<Member> all;
  if (!world_.empty())
    for (const auto& [rank, member] : roster_.members()) all.push_back(member);
  return all;
}

std::string Monitor::world() const {
  const std::lock_guard lock(mutex_);
  return world_;
}

bool Monitor::has_left(int rank) const {
  const std::lock_guard lock(mutex_);
  return roster_.has_ended(rank) || (cause_ && roster_.find(rank) != nullptr);
}

std::vector<int> Monitor::missing() const {
  const std::lock_guard lock(mutex_);
  return roster_.missing();
}

bool Monitor::wait_until_met(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return !world_.empty() || cause_; });
}

Error Monitor::why_broken(const std::string& what, const std::vector<int>& suspects) {
  std::unique_lock lock(mutex_);
  if (!cause_) {
    loss_report_ = {suspects, what};
    wake();
    changed_.wait_for(lock, kNews, [&] { return cause_.has_value(); });
  }
  if (!cause_) set_cause(roster_.unreachable(suspects, what));
  return Error(cause_->text, cause_->code);
}

Error Monitor::abort(const Error& error) {
  std::unique_lock lock(mutex_);
  if (!cause_) {
    aborting_ = {place_.rank, error.code(),
                 fmt::format("[parallel] rank {} ended the run: {} ({}, pid {}; {})", place_.rank,
                             without_secrets(error.what()), self_.host, self_.pid,
                             progress_text(options_.progress->report()))};
  }
  wake();
  changed_.wait_for(lock, kHeard, [&] { return cause_ && all_have_heard_; });
  return end_of(error);
}

/// Returns the error with which this rank ends because of `own`, now that the cause is known: one cause has
/// one code on all ranks.
Error Monitor::end_of(const Error& own) const {
  if (!cause_) return own;  // rank 0 does not answer, and no other rank decides
  const std::string text = without_secrets(own.what());
  const bool is_the_same =
      cause_->text.find(text) != std::string::npos || text.find(cause_->text) != std::string::npos;
  if (is_the_same) return Error(text, cause_->code);
  return Error(fmt::format("{}\nRank {} failed by itself, too: {}", cause_->text, place_.rank, text),
               cause_->code);
}

void Monitor::break_world(Cause cause) {
  const std::lock_guard lock(mutex_);
  set_cause(std::move(cause));
  wake();
}

bool Monitor::ask(MarkQuestion question) {
  std::unique_lock lock(mutex_);
  question.number = ++num_questions_;
  if (const auto known = answer(question)) return *known;
  questions_.push_back(question);
  wake();
  changed_.wait_for(lock, kAnswer, [&] { return answers_.count(question.number) > 0 || cause_; });
  const auto found = answers_.find(question.number);
  if (found == answers_.end() && cause_) throw Error(cause_->text, cause_->code);
  const bool is_marked = found != answers_.end() && found->second;
  answers_.erase(question.number);
  return is_marked;
}

}  // namespace tycho
