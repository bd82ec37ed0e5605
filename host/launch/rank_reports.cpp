// Reads lines such as "12 saving a checkpoint" and "!\"[data] ...\"".
#include "host/launch/rank_reports.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/rendezvous/launcher_reports.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr auto kReportLives = seconds(4);  // a rank reports each second
constexpr auto kLongestAllowance = minutes(10);
constexpr size_t kLongestReport = 64 << 10;

bool is_in_callback(std::string_view phase) { return phase.find("callback") != std::string_view::npos; }

}  // namespace

RankReports::RankReports() {
  if (pipe2(ends_, O_CLOEXEC) != 0)
    fail(ExitCode::kFailure, "[launch] cannot open a pipe for a rank: {}", std::strerror(errno));
  fcntl(ends_[0], F_SETFL, O_NONBLOCK);
}

RankReports::~RankReports() {
  for (const int end : ends_)
    if (end >= 0) close(end);
}

void RankReports::close_rank_end() { close(std::exchange(ends_[1], -1)); }

void RankReports::read() {
  std::array<char, 4096> buffer;
  ssize_t n = 0;
  while (ends_[0] >= 0 && (n = ::read(ends_[0], buffer.data(), buffer.size())) > 0) {
    rest_.append(buffer.data(), static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
      take(std::string_view(rest_).substr(begin, end - begin));
    rest_.erase(0, begin);
    if (rest_.size() > kLongestReport) rest_.clear();
  }
  if (n == 0 && ends_[0] >= 0) close(std::exchange(ends_[0], -1));
}

void RankReports::take(std::string_view line) {
  if (line.starts_with(kErrorMark)) {
    error_ = parse_json(line.substr(1), "launch").get<std::string>();
    return;
  }
  int64_t step = -1;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
  if (error != std::errc() || end == line.data() + line.size()) return;
  phase_ = std::string(end + 1, line.data() + line.size());
  heard_at_ = Clock::now();
  if (step == step_) return;
  // The time before the first step does not measure a step.
  if (step_ >= 0 && step > step_)
    longest_step_ = std::max(longest_step_, (heard_at_ - step_at_) / (step - step_));
  step_ = step;
  step_at_ = heard_at_;
}

bool RankReports::is_fresh() const { return !phase_.empty() && Clock::now() - heard_at_ < kReportLives; }

std::string RankReports::phase() const { return is_fresh() ? phase_ : ""; }

RankReports::Clock::duration RankReports::allowance(bool can_step) const {
  if (!is_fresh() || is_in_callback(phase_)) return {};
  if (is_saving(phase_)) return kTimeToSave;
  return can_step ? std::min<Clock::duration>(longest_step_, kLongestAllowance) : Clock::duration{};
}

}  // namespace tycho
