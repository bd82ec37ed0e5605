// A few values under a lock that is never held for long.
#include "trainer/rendezvous/progress.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/base/seconds_since.h"

namespace tycho {
namespace {

constexpr double kShown_s = 2;

std::string for_seconds(double seconds) {
  return seconds < kShown_s ? "" : fmt::format(" for {:.0f} s", seconds);
}

}  // namespace

std::string progress_text(const ProgressReport& report) {
  std::string text = report.step < 0 ? "" : fmt::format("step {}, ", report.step);
  text += report.phase + for_seconds(report.phase_s);
  if (!report.collective.empty())
    text += fmt::format(", in {}{}", report.collective, for_seconds(report.collective_s));
  return text;
}

void Progress::set_step(int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

std::string Progress::set_phase(std::string phase) {
  const std::lock_guard lock(mutex_);
  phase_begin_ = Clock::now();
  return std::exchange(phase_, std::move(phase));
}

std::string Progress::set_collective(std::string_view name) {
  const std::lock_guard lock(mutex_);
  collective_begin_ = Clock::now();
  if (collective_.empty()) wait_begin_ = collective_begin_;
  if (name.empty() && !collective_.empty())
    comm_time_.wait_s += std::chrono::duration<double>(collective_begin_ - wait_begin_).count();
  return std::exchange(collective_, std::string(name));
}

void Progress::add_transfer(double seconds) {
  const std::lock_guard lock(mutex_);
  comm_time_.transfer_s += seconds;
}

CommTime Progress::comm_time() const {
  const std::lock_guard lock(mutex_);
  return comm_time_;
}

void Progress::set_prompt() {
  const std::lock_guard lock(mutex_);
  is_prompt_ = true;
}

bool Progress::is_prompt() const {
  const std::lock_guard lock(mutex_);
  return is_prompt_;
}

ProgressReport Progress::report() const {
  const std::lock_guard lock(mutex_);
  return {step_, phase_, seconds_since(phase_begin_), collective_,
          collective_.empty() ? 0 : seconds_since(collective_begin_)};
}

int64_t Progress::copy_place(std::array<char, kPhaseChars + 1>& phase) const {
  const std::lock_guard lock(mutex_);
  phase[phase_.copy(phase.data(), kPhaseChars)] = '\0';
  return step_;
}

Progress& process_progress() {
  static Progress progress;
  return progress;
}

}  // namespace tycho
