// The keys of the registry: here/R, left/R, done/R (it knows why the others left) and marked/NAME.
#include "trainer/parallel/rank_registry.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/parallel/exit_reason.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kReasonWait = std::chrono::seconds(2);  // for ranks that are alive to give their reason
constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr const char* kAnyLeft = "any left";

std::string here(int rank) { return fmt::format("here/{}", rank); }
std::string left(int rank) { return fmt::format("left/{}", rank); }
std::string done(int rank) { return fmt::format("done/{}", rank); }
std::string marked(const std::string& name) { return "marked/" + name; }

std::string this_process() {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}, pid {}", host, getpid());
}

Error gone(const std::string& who, const std::string& what) {
  return Error(
      fmt::format("[parallel] {} has ended or does not answer: {}. The same command resumes from the "
                  "newest checkpoint",
                  who, what.substr(0, what.find('\n'))),
      ExitCode::kTerminated);
}

}  // namespace

void RankRegistry::wait_for_all(double timeout_s) {
  put(here(rank_), this_process());
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  std::vector<int> missing;
  do {
    missing.clear();
    for (int r = 0; r < num_ranks_; ++r)
      if (!has(here(r))) missing.push_back(r);
    if (missing.empty()) {
      rank_0_ = get(here(0));
      return;
    }
    std::this_thread::sleep_for(kPoll);
  } while (Clock::now() < deadline);
  fail(ExitCode::kTopology, "[parallel] {} of {} ranks did not arrive within {} s: {}", missing.size(),
       num_ranks_, timeout_s, fmt::join(missing, ", "));
}

void RankRegistry::record_exit(const Error& error) {
  if (std::exchange(has_recorded_, true)) return;
  put_reason(exit_reason(error));
  put(done(rank_), "yes");
}

bool RankRegistry::has_any_left() { return has(kAnyLeft); }

Error RankRegistry::explain(const std::string& what, const std::vector<int>& suspects) {
  try {
    has_recorded_ = true;
    put_reason("");  // not the cause
    Error found = find_cause(what, suspects);
    put(done(rank_), "yes");
    wait_for_readers(/*silent_too=*/false);
    return found;
  } catch (const std::exception&) {  // the store went with rank 0
    return gone(fmt::format("rank 0 ({})", rank_0_), what);
  }
}

Error RankRegistry::find_cause(const std::string& what, const std::vector<int>& suspects) {
  const auto deadline = Clock::now() + kReasonWait;
  std::vector<int> silent;
  do {
    silent.clear();
    for (int r = 0; r < num_ranks_; ++r) {
      if (r == rank_) continue;
      if (!has(left(r))) {
        silent.push_back(r);
      } else if (const std::string reason = get(left(r)); !reason.empty()) {
        return ended_by(static_cast<size_t>(r), reason);
      }
    }
    std::this_thread::sleep_for(kPoll);
  } while (!silent.empty() && Clock::now() < deadline);
  // A rank that computes far from this collective may be silent, too.
  const auto is_suspect = [&](int r) {
    return std::find(suspects.begin(), suspects.end(), r) != suspects.end();
  };
  if (std::any_of(silent.begin(), silent.end(), is_suspect))
    std::erase_if(silent, [&](int r) { return !is_suspect(r); });
  std::vector<std::string> names;
  for (const int r : silent) names.push_back(fmt::format("rank {} ({})", r, get(here(r))));
  return gone(names.empty() ? "a rank" : fmt::format("{}", fmt::join(names, ", ")), what);
}

void RankRegistry::wait_for_readers(bool silent_too) {
  if (rank_ != 0) return;
  try {
    const auto deadline = Clock::now() + kReasonWait;
    for (int r = 1; r < num_ranks_; ++r)
      while ((silent_too || has(left(r))) && !has(done(r)) && Clock::now() < deadline)
        std::this_thread::sleep_for(kPoll);
  } catch (const std::exception&) {
    return;  // nobody is left to wait for
  }
}

void RankRegistry::mark(const std::string& name) { put(marked(name), "yes"); }

bool RankRegistry::is_marked(const std::string& name) { return has(marked(name)); }

void RankRegistry::put_reason(const std::string& reason) {
  put(left(rank_), reason);
  put(kAnyLeft, "yes");
}

void RankRegistry::put(const std::string& key, const std::string& text) {
  store_->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

bool RankRegistry::has(const std::string& key) { return store_->check({key}); }

std::string RankRegistry::get(const std::string& key) {
  const std::vector<uint8_t> bytes = store_->get(key);
  return {bytes.begin(), bytes.end()};
}

}  // namespace tycho
