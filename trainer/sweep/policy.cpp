// The failure policy of sweeps.
#include "trainer/sweep/policy.h"

#include <fmt/format.h>

#include "trainer/base/error.h"
#include "trainer/base/process/stop_signals.h"

namespace tycho {
namespace {

constexpr int64_t kMaxRetries = 2;
constexpr int kFirstSignal = 128;
constexpr const char* kDiverged = "diverged";

constexpr int code(ExitCode exit_code) { return static_cast<int>(exit_code); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TrialEnd retry_elsewhere(TrialEnd end, const std::string& what) {
  ++end.retries;
  end.state = end.retries > kMaxRetries ? TrialState::kFailed : TrialState::kPaused;
  end.note = end.retries > kMaxRetries ? fmt::format("{}, {} times", what, end.retries)
                                       : fmt::format("{}; retry {} of {}", what, end.retries, kMaxRetries);
  return end;
}

TrialEnd out_of_memory(const Trial& trial, const ProcessEnd& process_end, TrialEnd end) {
  end.state = TrialState::kFailed;
  end.note = "out of memory";
  if (trial.halved) end.note += " even with half the micro_batch";
  if (trial.halved || process_end.micro_batch < 2) return end;
  end.state = TrialState::kPaused;
  end.micro_batch = process_end.micro_batch / 2;
  end.note = fmt::format("out of memory; continues with micro_batch={}sp", end.micro_batch);
  return end;
}

TrialEnd diverged(TrialEnd end, const std::string& why) {
  end.state = TrialState::kStopped;
  end.note = kDiverged + why;
  return end;
}

TrialEnd stopped_early(const ProcessEnd& process_end, TrialEnd end) {
  const bool by_rule = !process_end.stopped_by.empty();
  end.state = by_rule ? TrialState::kStopped : TrialState::kPaused;
  end.note = by_rule ? process_end.stopped_by : "stopped and saved";
  return end;
}

}  // namespace

bool is_out_of_memory(const std::string& message) {
  for (const char* text :
       {"out of memory", "not enough memory", "can't allocate memory", "could not allocate", "bad_alloc"})
    if (message.find(text) != std::string::npos) return true;
  return false;
}

bool ends_saved(int exit_code) { return exit_code == 0 || is_stop_code(exit_code); }

TrialEnd judge(const Trial& trial, const ProcessEnd& process_end) {
  TrialEnd end{.exit_code = process_end.exit_code,
               .retries = process_end.steps_gained > 0 ? 0 : trial.retries,
               .losses = process_end.steps_gained > 0 ? 0 : trial.losses,
               .micro_batch = trial.halved ? trial.micro_batch : 0};
  const int exit_code = process_end.exit_code;
  if (exit_code == 0 && !process_end.not_finite.empty()) return diverged(end, ": " + process_end.not_finite);
  if (exit_code == 0) {
    end.state = process_end.at_last_rung ? TrialState::kFinished : TrialState::kRungDone;
    if (trial.halved) end.note = fmt::format("micro_batch={}sp after out of memory", trial.micro_batch);
    return end;
  }
  if (ends_saved(exit_code)) return stopped_early(process_end, end);
  const std::string message = first_line(process_end.message);
  if (exit_code == code(ExitCode::kNumerics)) {
    if (is_out_of_memory(process_end.message)) return out_of_memory(trial, process_end, end);
    return diverged(end, "");
  }
  if (exit_code == code(ExitCode::kUnusable) || exit_code == code(ExitCode::kStorage))
    return retry_elsewhere(end, message);
  if (exit_code > kFirstSignal) {
    const std::string note = fmt::format("killed by signal {}", exit_code - kFirstSignal);
    if (!process_end.leaving) return retry_elsewhere(end, note);
    end = stopped_early(process_end, end);
    if (process_end.stopped_by.empty()) end.note = note;
    return end;
  }
  end.state = TrialState::kFailed;
  end.note = message.empty() ? fmt::format("exit code {}", exit_code) : message;
  return end;
}

TrialEnd judge_lost(const Trial& trial, int64_t steps_gained) {
  TrialEnd end{.state = TrialState::kLost,
               .exit_code = trial.exit_code,
               .retries = trial.retries,
               .losses = steps_gained > 0 ? 1 : trial.losses + 1,
               .micro_batch = trial.halved ? trial.micro_batch : 0};
  end.note = fmt::format("its worker on {} died", trial.host);
  if (end.losses >= kMaxLosses) {
    end.state = TrialState::kFailed;
    end.note = fmt::format("lost {} times without completing a step", end.losses);
  }
  return end;
}

}  // namespace tycho
