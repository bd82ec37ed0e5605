// Callbacks, dynamic schedules and operators, called from the training loop.
#include "trainer/train/hooks.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/text/json_number.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

constexpr const char* kInterruptedMark = "\x1b";  // in the place of a message

RunnerContext context_of(const TrainConfig& config, const RunInfo& run, const RunClock& clock,
                         Communicator& world, int local_rank, Reporter& reporter, Dist* dist) {
  return {.rank = world.rank(),
          .local_rank = local_rank,
          .reporter = reporter,
          .gather = [&world](const std::string& mine) { return all_gather_strings(world, mine); },
          .dist = dist,
          .in_steps =
              [&config, &run](const Duration& length) {
                return in_steps(length, config, total_steps(config, run.num_samples), run.num_samples);
              },
          .lead = [&config, &clock](DurationUnit unit) { return clock_lead(unit, config, clock); }};
}

}  // namespace

Hooks::Hooks(const TrainConfig& config, const RunInfo& run, const RunClock& clock, CallbackSource* source,
             Communicator& world, int local_rank, Reporter& reporter)
    : config_(config),
      run_(run),
      clock_(clock),
      world_(world),
      reporter_(reporter),
      source_(source),
      dist_(make_dist(world)),
      runner_(source != nullptr ? source->callbacks() : std::vector<Callback>(),
              context_of(config, run, clock, world, local_rank, reporter, dist_.get())),
      schedule_(source != nullptr ? source->schedule() : nullptr) {
  if (source == nullptr && !config.callbacks.empty())
    reporter.event("warning", "the recipe's callbacks do not run here",
                   {{"callbacks", config.callbacks.size()}});
  if (source == nullptr || world.rank() != 0) return;
  std::string warning;
  channel_ = std::make_unique<ControlChannel>(run.run_dir, &warning);
  if (!warning.empty()) reporter.event("warning", warning, Json::object());
}

void Hooks::announce(AnnouncedEvent announced, int64_t steps_done, StepMetrics metrics,
                     const EvalRecords& eval) {
  const Event event = announced.event;
  in_step_ = entry_of(event).in_step;
  const struct Reset {
    bool& in_step;
    ~Reset() { in_step = false; }
  } reset{in_step_};
  if (!runner_.wants(event, steps_done + (in_step_ ? 1 : 0))) return;
  const Range range("callbacks of ", enum_name(event));
  if (announced.grad_norm) metrics.grad_norm = *announced.grad_norm;
  runner_.announce({event, metrics, run_, &eval, std::move(announced.facts)});
}

void Hooks::record_metric(int64_t step, const std::string& name, double value) {
  if (world_.rank() == 0) return reporter_.metric(step, name, value);
  runner_.record_metric(step, name, value);
}

void Hooks::record_event(const std::string& kind, const std::string& text, const Json& facts) {
  if (world_.rank() == 0) return reporter_.event(kind, text, facts);
  runner_.record_event(kind, text, facts);
}

Agreement Hooks::boundary(const EventInfo& info, int wait_ms, int signal) {
  return runner_.boundary(info.metrics.step, serve_operators(info, wait_ms), signal);
}

std::vector<Command> Hooks::serve_operators(const EventInfo& info, int wait_ms) {
  std::vector<Command> all = std::exchange(queued_, {});
  if (!channel_) return all;
  for (const OperatorLine& line : channel_->poll(wait_ms)) {
    std::vector<Command> commands;
    CallbackPort port{commands};
    serving_ = true;
    try {
      std::string text = source_->evaluate(line.code, line.may_command, info, port);
      for (Command& command : commands) command.by = line.by;
      all.insert(all.end(), commands.begin(), commands.end());
      if (commands.empty())
        channel_->answer(line, true, text);
      else
        open_lines_.push_back({line, std::move(text), std::move(commands)});
    } catch (const Error& error) {
      channel_->answer(line, false, error.what());
    }
    serving_ = false;
  }
  return all;
}

void Hooks::outcome(const Command& command, const std::string& refused, int64_t step) {
  const Json wanted = command_json(command);
  for (OpenLine& open : open_lines_) {
    const auto found = std::find_if(open.commands.begin(), open.commands.end(),
                                    [&](const Command& one) { return command_json(one) == wanted; });
    if (found == open.commands.end()) continue;
    const std::string said = refused.empty()
                                 ? fmt::format("{} after step {}", command_text(command), step)
                                 : fmt::format("{} has no effect: {}", command_text(command), refused);
    open.text += (open.text.empty() ? "" : "\n") + said;
    open.is_refused |= !refused.empty();
    open.commands.erase(found);
    return;
  }
}

void Hooks::answer_operators() {
  for (const OpenLine& open : std::exchange(open_lines_, {}))
    channel_->answer(open.line, !open.is_refused && open.commands.empty(), open.text);
}

void Hooks::require_all_ranks(const std::string& what) {
  const std::optional<CallbackKind> running = runner_.running();
  if (serving_ || (running && *running != CallbackKind::kEverywhere))
    fail(ExitCode::kUsage,
         "[parallel] {} needs all ranks, because they share the parameters (parallel.dp_shard, cp, tp or "
         "pp), but this code runs on one rank: use t.everywhere, and let rank 0 record the result",
         what);
  if (running) dist_->gather({}, what);
}

bool Hooks::ask_schedule(int64_t steps_done, const std::optional<StepMetrics>& last) {
  if (!schedule_) return true;
  const std::optional<double> loss = last ? std::optional<double>(last->loss) : resumed_loss_;
  const double now = static_cast<double>(steps_done) + clock_lead(config_.max_duration.unit, config_, clock_);
  std::string failure;
  try {
    factor_ = schedule_->factor(static_cast<int64_t>(now), total_steps(config_, run_.num_samples), loss);
  } catch (const Error& error) {
    failure = error.code() == ExitCode::kInterrupted ? kInterruptedMark : error.what();
  }
  // A rank that goes on alone would wait for the others in the middle of the step.
  const std::vector<std::string> failures = all_gather_strings(world_, failure);
  bool is_interrupted = false;
  for (size_t rank = 0; rank < failures.size(); ++rank) {
    is_interrupted = is_interrupted || failures[rank] == kInterruptedMark;
    if (failures[rank].empty() || failures[rank] == kInterruptedMark) continue;
    fail(ExitCode::kRecipe, "[schedule] rank {}, before step {}: {}", rank, steps_done + 1, failures[rank]);
  }
  return !is_interrupted;
}

void Hooks::save_state(TrainState& state, const std::optional<StepMetrics>& last) const {
  state.callbacks = runner_.state();
  state.controls.enabled = runner_.switched();
  if (!schedule_) return;
  state.schedule = {{"state", schedule_->state()}};
  const std::optional<double> loss = last ? std::optional<double>(last->loss) : resumed_loss_;
  if (loss) set_number(state.schedule, "loss", *loss);
}

void Hooks::load_state(const TrainState& state) {
  runner_.set_state(state.callbacks, state.controls.enabled);
  if (!schedule_ || state.schedule.is_null()) return;
  schedule_->set_state(state.schedule.at("state"));
  resumed_loss_ = number_in(state.schedule, "loss");
}

}  // namespace tycho
