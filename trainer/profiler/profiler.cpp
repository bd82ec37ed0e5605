// Records spans of training with LibTorch's profiler (Kineto).
#include "trainer/profiler/profiler.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

int64_t steps_of(const Duration& duration) { return static_cast<int64_t>(duration.value); }

std::set<ActivityType> activities(bool gpu) {
  if (gpu) return {ActivityType::CPU, ActivityType::CUDA};
  return {ActivityType::CPU};
}

torch::profiler::impl::ProfilerConfig kineto_config(const ProfileConfig& config) {
  return torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::KINETO, config.shapes,
                                               config.memory);
}

/// Returns host time by name; nested ranges count to the outer one too.
Json ranges_of(const kineto::ProfilerResult& result) {
  struct Sum {
    int64_t calls = 0;
    uint64_t ns = 0;
  };
  std::map<std::string, Sum> sums;
  for (const kineto::KinetoEvent& event : result.events()) {
    if (event.deviceType() != c10::DeviceType::CPU || event.isHiddenEvent()) continue;
    Sum& sum = sums[event.name()];
    ++sum.calls;
    sum.ns += event.durationNs();
  }
  Json list = Json::array();
  for (const auto& [name, sum] : sums)
    list.push_back({{"name", name}, {"calls", sum.calls}, {"seconds", 1e-9 * static_cast<double>(sum.ns)}});
  std::stable_sort(list.begin(), list.end(),
                   [](const Json& a, const Json& b) { return a.at("seconds") > b.at("seconds"); });
  return list;
}

}  // namespace

Profiler::Profiler(const ProfileConfig& config, Place place, Reporter& reporter)
    : config_(config),
      place_(std::move(place)),
      reporter_(reporter),
      records_here_(std::find(config.ranks.begin(), config.ranks.end(), place_.rank) != config.ranks.end()) {}

Profiler::~Profiler() { drop(); }

int64_t Profiler::cycle() const {
  return steps_of(config_.wait) + steps_of(config_.warmup) + steps_of(*config_.active);
}

bool Profiler::has_cycles_left() const {
  if (!config_.active || broken_) return false;
  const int64_t since = steps_ - steps_of(config_.skip_first);
  return since < 0 || config_.repeat_count == 0 || since / cycle() < config_.repeat_count;
}

Profiler::Phase Profiler::scheduled() const {
  if (!has_cycles_left()) return Phase::kNothing;
  const int64_t wait = steps_of(config_.wait), warmup = steps_of(config_.warmup),
                since = steps_ - steps_of(config_.skip_first), at = since % cycle();
  if (since < 0 || at < wait) return Phase::kNothing;
  if (at < wait + warmup) return Phase::kWarmUp;
  return at == cycle() - 1 ? Phase::kRecordLast : Phase::kRecord;
}

std::string Profiler::phase() const {
  if (!records_here_) return by_hand_ ? "active" : "off";
  const Phase next = scheduled();
  if (recording_ || ordered_ > 0 || next == Phase::kRecord || next == Phase::kRecordLast) return "active";
  if (next == Phase::kWarmUp) return "warmup";
  return has_cycles_left() ? "wait" : "off";
}

void Profiler::begin_step(int64_t step) {
  step_ = step;
  if (!records_here_ || by_hand_) return;
  const Phase phase = scheduled();
  carefully([&] {
    if (phase == Phase::kWarmUp && !recording_) prepare();
    if (ordered_ > 0 || phase == Phase::kRecord || phase == Phase::kRecordLast) {
      if (!recording_) open(step);
    }
  });
}

void Profiler::end_step() {
  const bool last_of_cycle = scheduled() == Phase::kRecordLast && ordered_ == 0;
  ++steps_;
  if (!recording_ || by_hand_) return;
  const bool last_ordered = ordered_ > 0 && --ordered_ == 0;
  if (last_ordered || last_of_cycle) carefully([&] { close(step_, /*with_ranges=*/false); });
}

void Profiler::end() {
  ordered_ = 0;
  if (recording_ && !by_hand_) carefully([&] { close(step_, /*with_ranges=*/false); });
}

void Profiler::order(int64_t num_steps) {
  if (recording_)
    fail(ExitCode::kRecipe, "[profile] a profile is already being recorded: wait until it is written");
  ordered_ = num_steps;
  broken_ = false;
}

void Profiler::start() {
  if (recording_)
    fail(ExitCode::kUsage, "[profile] a profile is already being recorded: wait until it is written");
  open(step_ + 1);
  by_hand_ = true;
}

Json Profiler::finish(int64_t last_step) {
  by_hand_ = false;
  return close(last_step, /*with_ranges=*/true);
}

void Profiler::prepare() {
  if (prepared_) return;
  kineto::prepareProfiler(kineto_config(config_), activities(place_.gpu));
  prepared_ = true;
}

void Profiler::open(int64_t first_step) {
  prepare();
  kineto::enableProfiler(kineto_config(config_), activities(place_.gpu));
  recording_ = true;
  prepared_ = false;
  first_step_ = first_step;
}

Json Profiler::close(int64_t last_step, bool with_ranges) {
  recording_ = false;
  const std::unique_ptr<kineto::ProfilerResult> result = kineto::disableProfiler();
  make_dirs(real_files(), place_.folder);
  const std::string path = fmt::format("{}/rank{}.steps-{}-{}.pt.trace.json", place_.folder, place_.rank,
                                       first_step_, std::max(last_step, first_step_));
  result->save(path);
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path, none);
  if (none || bytes == 0) fail(ExitCode::kStorage, "[profile] {} could not be written", path);
  newest_trace_ = path;
  reporter_.event("profile", fmt::format("profiled to {}", path),
                  {{"path", path}, {"first_step", first_step_}, {"last_step", last_step}});
  return {{"path", path}, {"ranges", with_ranges ? ranges_of(*result) : Json::array()}};
}

void Profiler::drop() {
  if (!recording_) return;
  recording_ = false;
  try {
    kineto::disableProfiler();
  } catch (const std::exception&) {  // nobody is left to report to
  }
}

template <class Body>
void Profiler::carefully(Body&& body) {
  if (broken_) return;
  std::string what;
  try {
    return body();
  } catch (const c10::Error& error) {
    what = error.what_without_backtrace();
  } catch (const std::exception& error) {
    what = error.what();
  }
  drop();
  broken_ = true, prepared_ = false, ordered_ = 0;
  reporter_.event("warning", fmt::format("no profile is recorded: {}", what), Json::object());
}

}  // namespace tycho
