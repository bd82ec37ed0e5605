// One thread posts what waits, and watches for stalls.
#include "trainer/loggers/notify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/host_name.h"
#include "trainer/base/json.h"
#include "trainer/base/seconds_since.h"
#include "trainer/base/secrets.h"
#include "trainer/http/http_exchange.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostWaiting = 20;

/// Returns the text with Slack's three marks escaped.
std::string slack_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else
      escaped += c;
  }
  return escaped;
}

/// Returns the address in a variable, masked from here on.
std::string address_in(const std::string& variable, const std::string& name) {
  std::string url = environment_variable(variable.c_str());
  register_secret(url);
  const size_t scheme = url.find("://");
  if (scheme != std::string::npos)  // what errors may quote of it
    if (const size_t path = url.find('/', scheme + 3); path != std::string::npos)
      register_secret(url.substr(path));
  if (url.empty())
    fail(ExitCode::kUnusable,
         "[notify] expected the address of a webhook in the variable {}, which callbacks.{} names, got none; "
         "export {}, or remove callbacks.{}",
         variable, name, variable, name);
  const bool is_web = url.starts_with("https://") || url.starts_with("http://");
  if (!is_web || url.find_first_of(" \t\r\n\"") != std::string::npos)
    fail(
        ExitCode::kUnusable,
        "[notify] expected an address that begins with https:// in the variable {}, got something else; copy "
        "it again",
        variable);
  return url;
}

class Notifier final : public Reporter {
 public:
  Notifier(const NotifyConfig& config, std::string name, std::string run_name, bool is_first_start,
           const NotifyPatience& patience)
      : config_(config),
        name_(std::move(name)),
        run_name_(std::move(run_name)),
        patience_(patience),
        last_sign_(Clock::now()) {
    try {
      url_ = address_in(config.url_env, name_);
    } catch (const Error& error) {
      if (is_first_start) throw;
      failure_ = error.what();
      return;
    }
    thread_ = std::thread([this] { work(); });
  }

  ~Notifier() override {
    if (!thread_.joinable()) return;
    stop_.request_stop();
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  void run_start(const RunInfo& run) override {
    const std::lock_guard lock(mutex_);
    step_ = run.first_step;
    last_sign_ = Clock::now();
    is_watched_ = true;
  }

  void step(const StepMetrics& metrics, bool) override {
    std::unique_lock lock(mutex_);
    step_ = metrics.step;
    loss_ = metrics.loss;
    sign_of_life();
    if (failure_.empty() || std::exchange(told_, true)) return;
    const std::string why = failure_;
    lock.unlock();
    fail(ExitCode::kStorage, "[notify] callbacks.{} reaches nobody: {}; the run continues", name_, why);
  }

  void event(const std::string& kind, const std::string&, const Json& facts) override {
    const std::lock_guard lock(mutex_);
    if (kind == "alert")
      put(fmt::format("{}: {}", facts.value("title", ""), facts.value("text", "")));
    else if (kind != "warning")
      sign_of_life();
  }

  void run_end(const std::string& reason, std::optional<ExitCode> failure) override {
    std::unique_lock lock(mutex_);
    is_watched_ = false;
    std::string text = fmt::format("{} (exit code {}", reason, exit_code_of(reason, failure));
    if (loss_) text += fmt::format(", step {}, loss {}", step_, metric_text(*loss_));
    put(text + ")");
    if (!thread_.joinable()) return;
    ends_ = true;
    changed_.notify_all();
    const bool done =
        changed_.wait_for(lock, std::chrono::duration<double>(patience_.end_s), [&] { return is_done_; });
    if (done && failure_.empty()) return;
    std::string why = failure_.empty() ? problem_ : failure_;
    if (why.empty()) why = fmt::format("no answer in {:g} s", patience_.end_s);
    if (std::exchange(told_, true)) return;
    lock.unlock();
    fail(ExitCode::kStorage, "[notify] callbacks.{} could not tell how the run ended: {}", name_, why);
  }

 private:
  // The members below are used with the lock held.
  void put(const std::string& text) {
    if (waiting_.size() < kMostWaiting)
      waiting_.push_back(fmt::format("{} on {}: {}", run_name_, host_name(), text));
    changed_.notify_all();
  }

  void sign_of_life() {
    if (std::exchange(is_stalled_, false))
      put(fmt::format("goes on after {:.0f} s, at step {}", seconds_since(last_sign_), step_));
    last_sign_ = Clock::now();
  }

  void look_for_stall() {
    const double silence_s = seconds_since(last_sign_);
    if (!is_watched_ || is_stalled_ || silence_s < config_.stall.value) return;
    is_stalled_ = true;
    put(fmt::format("stalled: nothing has happened for {:.0f} s, after step {}", silence_s, step_));
  }

  void work() {
    const std::chrono::duration<double> look_every(std::min(patience_.look_every_s, config_.stall.value / 4));
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait_for(lock, look_every, [&] { return ends_ || !waiting_.empty(); });
      look_for_stall();
      while (!waiting_.empty() && !stop_.stop_requested()) {
        const std::string text = waiting_.front();
        waiting_.pop_front();
        lock.unlock();
        const std::string failure = post(text);
        lock.lock();
        failure_ = failure;
        if (failure.empty()) told_ = false;
      }
      if (ends_) break;
    }
    is_done_ = true;
    changed_.notify_all();
  }

  /// Returns why it failed; "" when it did not.
  std::string post(const std::string& text) {
    std::string failure;
    double wait_s = patience_.first_wait_s;
    for (int i = 0; i < patience_.num_tries && !stop_.stop_requested(); ++i, wait_s *= 2) {
      if (i > 0) pause(wait_s);
      const HttpAnswer answer = http_exchange({.method = "POST",
                                               .url = url_,
                                               .headers = {"Content-Type: application/json"},
                                               .body = Json{{"text", slack_text(without_secrets(text))}}.dump(
                                                   -1, ' ', false, Json::error_handler_t::replace),
                                               .timeout_s = patience_.timeout_s},
                                              stop_.get_token());
      if (answer.status >= 200 && answer.status < 300) return "";
      failure = answer.status == 0
                    ? answer.problem
                    : fmt::format("the address in {} answers {}", config_.url_env, answer.status);
      wait_s = std::max(wait_s, answer.wait_s);
      note_problem(without_secrets(failure));
      if (!answer.may_pass()) break;
    }
    return failure.empty() ? "stopped" : without_secrets(failure);
  }

  void pause(double wait_s) {
    constexpr double kLongest_s = 60, kLongestAtEnd_s = 1;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(wait_s, kLongest_s)),
                      [&] { return stop_.stop_requested() || ends_; });
    if (ends_)
      changed_.wait_for(lock, std::chrono::duration<double>(kLongestAtEnd_s),
                        [&] { return stop_.stop_requested(); });
  }

  void note_problem(std::string problem) {
    const std::lock_guard lock(mutex_);
    problem_ = std::move(problem);
  }

  const NotifyConfig config_;
  const std::string name_, run_name_;
  const NotifyPatience patience_;
  std::string url_;
  std::stop_source stop_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  std::string failure_, problem_;  // of the last message, and of the last try
  int64_t step_ = 0;
  std::optional<double> loss_;
  Clock::time_point last_sign_;
  bool is_watched_ = false, is_stalled_ = false, told_ = false, ends_ = false, is_done_ = false;
  std::thread thread_;
};

}  // namespace

int exit_code_of(const std::string& reason, std::optional<ExitCode> failure) {
  if (failure) return static_cast<int>(*failure);
  for (int signal = 1; signal < NSIG; ++signal)
    if (const char* name = ::sigabbrev_np(signal); name != nullptr)
      if (reason.starts_with(fmt::format("stopped by SIG{} ", name))) return 128 + signal;
  return 0;
}

std::vector<std::unique_ptr<Reporter>> make_notifiers(const std::map<std::string, CallbackConfig>& callbacks,
                                                      const std::string& run_name, const std::string& run_dir,
                                                      const NotifyPatience& patience) {
  std::vector<std::unique_ptr<Reporter>> notifiers;
  for (const auto& [name, callback] : callbacks)
    if (const auto* notify = std::get_if<NotifyConfig>(&callback.value))
      notifiers.push_back(
          std::make_unique<Notifier>(*notify, name, run_name, next_attempt(run_dir) == 1, patience));
  return notifiers;
}

}  // namespace tycho
