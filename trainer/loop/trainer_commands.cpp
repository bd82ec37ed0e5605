// Applies commands to a trainer: on every rank, at the same step boundary.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "trainer/base/error.h"
#include "trainer/config/data_stages.h"
#include "trainer/loop/trainer.h"
#include "trainer/loop/with_controls.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

/// An argument of a command, or nothing when it was left out.
template <class T>
std::optional<T> argument(const Command& command, const char* name) {
  if (!command.arguments.contains(name)) return std::nullopt;
  return command.arguments.at(name).get<T>();
}

std::string text_argument(const Command& command, const char* name) {
  return argument<std::string>(command, name).value_or("");
}

}  // namespace

void Trainer::boundary(int wait_ms) {
  require_owner();
  const StepMetrics now = metrics_now();
  const Agreement agreed = hooks_.boundary(event_info(Event::kBatchEnd, now), wait_ms, context_.stop);
  signal_ = agreed.signal;
  for (const Command& command : agreed.commands) {
    try {
      apply(command);
      hooks_.outcome(command, "", state_.step);
      context_.reporter.event("command", fmt::format("{} by {}", command_text(command), command.by),
                              {{"step", state_.step}, {"command", command_json(command)}});
    } catch (const Error& error) {
      hooks_.outcome(command, error.what(), state_.step);
      if (error.code() != ExitCode::kRecipe) hooks_.answer_operators();
      if (error.code() != ExitCode::kRecipe) throw;
      context_.reporter.event(
          "warning",
          fmt::format("{} by {} was rejected: {}", command_text(command), command.by, error.what()),
          {{"step", state_.step}, {"command", command_json(command)}});
    }
  }
  hooks_.answer_operators();
  failed_together_ = !agreed.failure.empty();
  if (failed_together_)
    fail(ExitCode::kRecipe, "[callback] {}; on_error = \"warn\" or \"disable\" lets training continue",
         agreed.failure);
}

std::optional<EvalResults> Trainer::evaluate(const std::string& only) {
  if (!evaluations_.has_sets()) return std::nullopt;
  if (evaluations_.is_one_of_several(only)) return evaluations_.evaluate_one(only, state_.step);
  announce(Event::kEvalStart);
  std::optional<EvalResults> results = evaluations_.evaluate(state_.step, state_.eval);
  if (results) announce(Event::kEvalEnd);
  return results;
}

// Operators can inspect, evaluate and save while training is paused.
void Trainer::wait_while_paused() {
  constexpr int kWait_ms = 50;
  if (!paused_) return;
  const InPhase phase("paused");
  const auto start = std::chrono::steady_clock::now();
  context_.reporter.event(
      "pause",
      fmt::format("paused after step {}; `tycho ctl {} resume` continues", state_.step, info_.run_dir),
      {{"step", state_.step}});
  while (paused_ && going_on()) {
    boundary(kWait_ms);
    if (state_.eval_open || state_.icl_open) settle_step();
    if (context_.saver.has_wanted()) save();
    context_.saver.poll();
  }
  throughput_.add_pause(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void Trainer::apply(const Command& command) {
  const std::string& name = command.name;
  Controls next = state_.controls;
  std::unique_ptr<DataLoader> remixed;
  if (name == "set_lr") {
    next.lr = argument<double>(command, "lr");
    next.lr_by = next.lr ? command.by : "";
  } else if (name == "scale_lr") {
    Controls::LrWindow window{command.arguments.at("factor").get<double>(), std::nullopt};
    if (const std::string text = text_argument(command, "for_next"); !text.empty()) {
      const Duration length = Duration::parse(text);
      const DurationUnit unit =
          length.unit == DurationUnit::kFraction ? config_.max_duration.unit : length.unit;
      window.until = state_.step + static_cast<int64_t>(std::ceil(steps_of(length)));
      window.counts_steps = unit == DurationUnit::kBatch;
    }
    next.lr_windows.push_back(window);
  } else if (name == "set_betas") {
    next.betas = argument<std::array<double, 2>>(command, "betas");
  } else if (name == "set_weight_decay") {
    next.weight_decay = argument<double>(command, "weight_decay");
  } else if (name == "set_clip") {
    next.clip_norm = argument<double>(command, "norm");
  } else if (name == "set_schedule") {
    next.scheduler = command.arguments.value("scheduler", Json());
  } else if (name == "set_log_every") {
    const std::string every = text_argument(command, "every");
    next.log_every = every.empty() ? std::nullopt : std::optional<Duration>(Duration::parse(every));
  } else if (name == "enable" || name == "disable") {
    hooks_.enable(text_argument(command, "callback"), name == "enable");
  } else if (name == "set_mix") {
    const DataConfig now = with_mix(stage_data(config_, state_.stage), next.mix);
    next.mix = command.arguments.contains("mix") ? changed_mix(now, command.arguments.at("mix")) : Mix();
    remixed = data_.remixed(state_, next.mix);
  } else if (name == "skip_batches") {
    data_.skip_batches(command.arguments.at("count").get<int64_t>(), state_);
  } else if (name == "save") {
    context_.saver.want(text_argument(command, "tag"));
  } else if (name == "eval") {
    state_.eval_open = true;
  } else if (name == "profile") {
    const std::string active = text_argument(command, "active");
    const double steps = active.empty() ? 1 : steps_of(Duration::parse(active));
    profiler_.order(std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps))));
  } else if (name == "stop") {
    stop_reason_ = fmt::format("stopped by {}", command.by);
    if (const std::string why = text_argument(command, "reason"); !why.empty()) stop_reason_ += ": " + why;
  } else if (name == "pause" || name == "resume") {
    paused_ = name == "pause";
  }
  take_effect(std::move(next));
  if (remixed) {
    data_.switch_to(std::move(remixed), state_);
    loss_watch_.restart();
  }
}

void Trainer::take_effect(Controls controls) {
  if (controls == state_.controls) return;
  if (controls.clip_norm && config_.clip.by_element_or_row())
    fail(ExitCode::kRecipe, "[trainer] set_clip sets clip.norm, but this run clips by clip.{}",
         config_.clip.value ? "value" : "adaptive");
  TrainConfig changed = with_controls(config_, controls);
  Schedule schedule = make_schedule(changed, clock_total_, info_.num_samples, clock_);
  const bool other_optimizer =
      controls.betas != state_.controls.betas || controls.weight_decay != state_.controls.weight_decay;
  if (other_optimizer) update_.change(changed);
  now_ = std::move(changed);
  schedule_ = std::move(schedule);
  state_.controls = std::move(controls);
}

}  // namespace tycho
