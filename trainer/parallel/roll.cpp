// Uses keys of a TCP store: here/RANK, left/RANK and marked/NAME.
#include "trainer/parallel/roll.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/parallel/last_words.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLastWords = std::chrono::seconds(2);  // for ranks that live to say so
constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr const char* kSomebodyLeft = "somebody left";

std::string here(int rank) { return fmt::format("here/{}", rank); }
std::string left(int rank) { return fmt::format("left/{}", rank); }
std::string marked(const std::string& name) { return "marked/" + name; }

std::string who_am_i() {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}, pid {}", host, getpid());
}

Error gone(const std::string& who, const std::string& what) {
  return Error(fmt::format("[parallel] {} has ended or does not answer: {}. The same command resumes from "
                           "the newest checkpoint",
                           who, what.substr(0, what.find('\n'))),
               ExitCode::kTerminated);
}

}  // namespace

void Roll::call(double timeout_s) {
  put(here(rank_), who_am_i());
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

void Roll::say_why(const Error& error) {
  if (!std::exchange(said_, true)) say(last_words(error));
}

bool Roll::somebody_left() { return has(kSomebodyLeft); }

Error Roll::explain(const std::string& what) {
  try {
    said_ = true;
    say("");  // not the cause
    const auto deadline = Clock::now() + kLastWords;
    std::vector<int> silent;
    do {
      silent.clear();
      for (int r = 0; r < num_ranks_; ++r) {
        if (r == rank_) continue;
        if (!has(left(r))) {
          silent.push_back(r);
        } else if (const std::string words = get(left(r)); !words.empty()) {
          return ended_by(static_cast<size_t>(r), words);
        }
      }
      std::this_thread::sleep_for(kPoll);
    } while (!silent.empty() && Clock::now() < deadline);
    std::vector<std::string> names;
    for (const int r : silent) names.push_back(fmt::format("rank {} ({})", r, get(here(r))));
    return gone(names.empty() ? "a rank" : fmt::format("{}", fmt::join(names, ", ")), what);
  } catch (const std::exception&) {  // the store went with rank 0
    return gone(fmt::format("rank 0 ({})", rank_0_), what);
  }
}

void Roll::wait_for_readers() {
  if (rank_ != 0) return;
  try {
    const auto deadline = Clock::now() + kLastWords;
    for (int r = 1; r < num_ranks_; ++r)
      while (!has(left(r)) && Clock::now() < deadline) std::this_thread::sleep_for(kPoll);
  } catch (const std::exception&) {
    return;  // nobody is left to wait for
  }
}

void Roll::mark(const std::string& name) { put(marked(name), "yes"); }

bool Roll::is_marked(const std::string& name) { return has(marked(name)); }

void Roll::say(const std::string& words) {
  put(left(rank_), words);
  put(kSomebodyLeft, "yes");
}

void Roll::put(const std::string& key, const std::string& text) {
  store_->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

bool Roll::has(const std::string& key) { return store_->check({key}); }

std::string Roll::get(const std::string& key) {
  const std::vector<uint8_t> bytes = store_->get(key);
  return {bytes.begin(), bytes.end()};
}

}  // namespace tycho
