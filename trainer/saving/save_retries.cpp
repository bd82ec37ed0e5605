// Texts about saves that fail, and the wait for room at the end of a run.
#include "trainer/saving/save_retries.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "trainer/base/seconds_since.h"
#include "trainer/comm/collective_strings.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLookForSignal = std::chrono::milliseconds(20);
const std::string kStopped = "stopped", kWaited = "waited";

std::string short_time(double seconds) {
  return seconds < 120 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.1f} min", seconds / 60);
}

}  // namespace

std::vector<std::string> SaveRetries::start() {
  step_.reset();
  return std::exchange(tags_, {});
}

void SaveRetries::failed(int64_t step, const std::string& tag, const Error& error, bool last) {
  policy_.failed();
  why_failed_ = error.what();
  failed_tags_.push_back(tag);
  std::string next;
  if (!last)
    next = policy_.max_lost_s() == 0
               ? "; the run ends now (ckpt.max_lost = 0 s)"
               : fmt::format(
                     "; the next try is in about {}, and the run ends when they fail for {} "
                     "(ckpt.max_lost)",
                     short_time(policy_.next_try_s()), short_time(policy_.max_lost_s()));
  reporter_.event("error", why_failed_ + next, {{"step", step}});
}

void SaveRetries::require_saved() const {
  if (policy_.is_failing()) fail(ExitCode::kStorage, "{}", why_failed_);
}

void SaveRetries::give_up(const std::string& why) const {
  fail(ExitCode::kStorage,
       "[checkpoint] {}; the last try failed: {}. The same command resumes from the newest checkpoint once "
       "the folder can be written",
       why, why_failed_);
}

void SaveRetries::require_allowed_loss() const {
  if (!policy_.allows_loss())
    give_up(fmt::format("no checkpoint could be written for ckpt.max_lost = {}",
                        short_time(policy_.max_lost_s())));
}

void SaveRetries::trained(int64_t step, double seconds) {
  policy_.trained(step, seconds);
  if (!policy_.is_failing()) return;
  require_allowed_loss();
  const std::string next = step_ ? fmt::format("next try after step {}; ", *step_) : "";
  reporter_.screen_warning(fmt::format("no checkpoint could be written for {}; {}after {} the run ends: {}",
                                       short_time(policy_.lost_s()), next, short_time(policy_.max_lost_s()),
                                       why_failed_));
}

void SaveRetries::wait(int64_t step, const std::atomic<int>& stop) {
  const auto start = Clock::now();
  const auto waited_s = [&] { return seconds_since(start); };
  const bool decides = world_.rank() == 0;
  if (decides)
    reporter_.screen_warning(fmt::format(
        "all steps are trained, and step {} is not saved. Waiting for room: next try in {}, the run "
        "ends in {} (ckpt.max_lost). Ctrl-C ends it now: {}",
        step, short_time(policy_.retry_s()), short_time(policy_.left_s()), why_failed_));
  while (true) {
    const bool is_over = decides && waited_s() >= policy_.retry_s();
    const std::vector<std::string> all = all_gather_strings(world_, stop != 0 ? kStopped
                                                                    : is_over ? kWaited
                                                                              : std::string());
    if (std::find(all.begin(), all.end(), kStopped) != all.end()) {
      if (decides) give_up("stopped before the last checkpoint could be written");
      return;  // the next collective says why it ends
    }
    if (all.front() == kWaited) break;
    std::this_thread::sleep_for(kLookForSignal);
  }
  policy_.waited(waited_s());
  require_allowed_loss();
}

void SaveRetries::tell(int64_t step, Json& news) {
  if (failed_tags_.empty()) return;
  news["retry_step"] = policy_.retry_step(step);
  news["tags"] = std::exchange(failed_tags_, {});
}

void SaveRetries::read(const Json& news) {
  if (!news.contains("retry_step")) return;
  step_ = news.at("retry_step");
  tags_ = news.at("tags").get<std::vector<std::string>>();
}

}  // namespace tycho
