// The loop. Read fit() and step() first; the rest serves them.
#include "trainer/train/trainer.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/device/device.h"
#include "trainer/kernels/tensor.h"
#include "trainer/recipe/step_tokens.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/train/loss_by_position.h"
#include "trainer/train/replica_check.h"
#include "trainer/train/step_guard.h"

namespace tycho {
namespace {

constexpr int64_t kCompareEvery = 100;  // steps between two looks at all tensors

using Clock = std::chrono::steady_clock;

}  // namespace

template <class Function>
auto Trainer::together(const Function& same) {
  failed_together_ = true;
  auto result = same();
  failed_together_ = false;
  return result;
}

int Trainer::fit() {
  const auto start = Clock::now();
  announce({Event::kFitStart});
  if (recipe_.eval.first && state_.step == 0) state_.eval_open = true;
  if (recipe_.icl.first && state_.step == 0) state_.icl_open = true;
  forget_stop();
  compare_ranks();
  try {
    if (state_.eval_open || state_.icl_open) obey_and_evaluate();
    advance(info_.total_steps);
    profiler_.end();
    if (is_finished()) warn_of_loss(figures_.loss_watch().end());
    if (halt_.signal != 0)
      announce({Event::kSignal, {{"kind", std::string("SIG") + sigabbrev_np(halt_.signal)}}});
    announce({Event::kFitEnd, {{"reason", is_finished() ? "done" : halt_.reason}}});
    obey();
  } catch (const Error& error) {
    // Where one rank alone has failed, the others are in the middle of a step and cannot save.
    const bool all_can_save = failed_together_ || context_.world.size() == 1;
    if (error.code() != ExitCode::kRecipe || !all_can_save) throw;
    const bool together = std::exchange(failed_together_, false);
    checkpoints_.save_now();
    failed_together_ = together;
    throw Error(std::string(error.what()) + ". The run stopped with a checkpoint", error.code());
  }
  checkpoints_.save_last(/*stopped=*/halt_.signal != 0);
  obey();  // what callbacks of the last checkpoints did
  context_.saver.wait_for_uploads(context_.stop, halt_.signal);
  hooks_.report_costs(seconds_since(start));
  return is_finished() ? 0 : halt_.signal;
}

void Trainer::forget_stop() {
  halt_.reason.clear();
  halt_.signal = first_signal(context_.world, context_.stop);
}

void Trainer::advance(int64_t until_step) {
  const auto is_due = [&](const auto& every) { return controls_.is_due(every); };
  while (state_.step < until_step && should_continue()) {
    const bool stepped = step();
    if (stepped && (is_due(recipe_.eval.every) || is_finished())) state_.eval_open = true;
    if (stepped && evaluations_.has_tasks() && (is_due(recipe_.icl.every) || is_finished()))
      state_.icl_open = true;
    step_boundary(stepped && is_due(recipe_.ckpt.every) && !is_finished());
  }
}

bool Trainer::step() {
  // Before anything of the step is done: what fails leaves the run between two steps, where it can be saved.
  if (!together([&] { return hooks_.ask_schedule(state_.step, figures_.newest()); })) return false;
  process_progress().set_step(state_.step);
  const InPhase phase("in a step");
  figures_.begin_step();
  const ProfiledStep profiled(profiler_, state_.step + 1);
  const auto start = Clock::now();
  if (data_.enter_stage(controls_.stage(), state_)) figures_.loss_watch().restart();
  if (state_.data.sample == 0) announce({Event::kEpochStart});
  announce({Event::kBatchStart,
            {{"batch", {{"sequences", global_batch_sequences(recipe_)}, {"seq_len", recipe_.seq_len}}}}});
  const Batch batch = data_.next();  // a pure function of (recipe, step)
  std::optional<LossByPosition> by_position;
  if (controls_.is_due(recipe_.log.loss_by_position, /*ahead=*/1))
    by_position.emplace(recipe_.seq_len, context_.device);
  if (tuning_.is_due()) tune(batch);
  const BatchSums sums = pass_.run(batch, state_.step, observers(by_position));
  const ClipConfig& clip = controls_.now().clip;
  const GradNorm norm = update_.grad_norm(clip);

  // The one place of a step where the host waits for the device.
  const Tensor numbers = joined({sums.losses_R, norm.norm_1.to(at::kDouble)}).cpu();
  context_.world.check();
  const StepLosses losses =
      step_losses(pass_.loss().terms(), numbers.const_data_ptr<double>(), sums.token_weight);
  const double loss = losses.loss, grad_norm = numbers.const_data_ptr<double>()[sums.losses_R.numel()];
  announce({Event::kGradsReady, Json::object(), grad_norm});
  const double lr = lr_at(state_.step);
  if (may_update(loss, grad_norm)) update_.step(clip, lr, norm, state_.step, state_.skipped);

  require_owner();  // before the first thing that is written of the step
  const int64_t epoch = state_.data.epoch;
  count_step(batch.num_sequences, batch.seq_len);
  StepMetrics metrics;
  metrics.loss = loss, metrics.lr = lr, metrics.grad_norm = grad_norm, metrics.step_s = seconds_since(start);
  const std::string warning = figures_.record(state_, batch, metrics, losses,
                                              controls_.is_due(controls_.now().log.every) || is_finished());
  context_.saver.trained(state_.step, metrics.step_s);
  warn_of_loss(warning);
  if (by_position) {
    by_position->sum_over(context_.mesh.group(kLossAxes));
    if (context_.world.rank() == 0) context_.reporter.table(state_.step, by_position->table());
  }
  announce({Event::kBatchEnd});
  if (state_.data.epoch != epoch) announce({Event::kEpochEnd, {{"ended", epoch}}});
  return true;
}

void Trainer::step_boundary(bool save_due) {
  obey_and_evaluate();
  compare_ranks();
  checkpoints_.tend(save_due);
  wait_while_paused();
  figures_.throughput().add_pause(context_.saver.take_pause_s());
}

void Trainer::obey_and_evaluate() {
  obey();
  if (!(state_.eval_open || state_.icl_open) || halt_.signal != 0) return;
  if (state_.eval_open && (evaluate() || !evaluations_.has_sets())) state_.eval_open = false;
  if (state_.icl_open) update_.refresh_average(state_.step - state_.skipped);
  if (state_.icl_open && evaluations_.evaluate_tasks(state_.step)) state_.icl_open = false;
  obey();
}

void Trainer::obey(int wait_ms) {
  require_owner();
  const StepMetrics now = figures_.now(state_);
  const Agreement agreed =
      hooks_.boundary({Event::kBatchEnd, now, info_, &state_.eval}, wait_ms, context_.stop);
  halt_.signal = agreed.signal;
  controls_.apply_all(agreed.commands, {data_, update_, hooks_, context_.saver, profiler_,
                                        figures_.loss_watch(), context_.reporter, halt_});
  failed_together_ = !agreed.failure.empty();
  if (failed_together_)
    fail(ExitCode::kRecipe, "[callback] {}; on_error = \"warn\" or \"disable\" lets training continue",
         agreed.failure);
}

// Operators can inspect, evaluate and save while training is paused.
void Trainer::wait_while_paused() {
  constexpr int kWait_ms = 50;
  if (!halt_.paused) return;
  const InPhase phase("paused");
  const auto start = Clock::now();
  context_.reporter.event(
      "pause",
      fmt::format("paused after step {}; `tycho ctl {} resume` continues", state_.step, info_.run_dir),
      {{"step", state_.step}});
  while (halt_.paused && should_continue()) {
    obey(kWait_ms);
    if (state_.eval_open || state_.icl_open) obey_and_evaluate();
    checkpoints_.tend(/*is_due=*/false);
  }
  figures_.throughput().add_pause(seconds_since(start));
}

std::optional<EvalResults> Trainer::evaluate(const std::string& only) {
  if (!evaluations_.has_sets()) return std::nullopt;
  update_.refresh_average(state_.step - state_.skipped);
  if (evaluations_.is_one_of_several(only)) return evaluations_.evaluate_one(only, state_.step);
  announce({Event::kEvalStart});
  std::optional<EvalResults> results = evaluations_.evaluate(state_.step, state_.eval);
  if (results) announce({Event::kEvalEnd});
  return results;
}

void Trainer::compare_ranks() {
  if (!context_.paranoid) return;
  together([&] {
    require_same_facts(context_.world, state_facts(state_, controls_.now(), lr_at(state_.step)), state_.step);
    const bool is_first = state_.step <= info_.first_step + 1;
    if (is_first || state_.step % kCompareEvery == 0 || is_finished())
      require_same_facts(context_.world,
                         tensor_facts(pass_.units().owned(), update_.optimizer(), update_.average()),
                         state_.step, context_.mesh.group(kCopyAxes).rank());
    return true;
  });
}

bool Trainer::may_update(double loss, double grad_norm) {
  const std::string wrong = together([&] { return wrong_with_step(recipe_, state_, loss, grad_norm); });
  if (wrong.empty()) return true;
  context_.reporter.event("warning", fmt::format("step {} skipped: {}", state_.step + 1, wrong),
                          {{"step", state_.step + 1}, {"skipped", state_.skipped}});
  announce({Event::kError, {{"message", wrong}}});
  return false;
}

BatchObservers Trainer::observers(std::optional<LossByPosition>& by_position) {
  BatchObservers observers;
  if (hooks_.wants(Event::kAfterForward, state_.step + 1))
    observers.after_forward = [this](Json streams) {
      announce({Event::kAfterForward, {{"activations", std::move(streams)}}});
    };
  if (by_position)
    observers.after_losses = [&by_position](const TokenLosses& losses) { by_position->add(losses); };
  return observers;
}

void Trainer::count_step(int64_t num_sequences, int64_t seq_len) {
  const int data_ranks = context_.mesh.group(kDataAxes).size();
  state_.step += 1;
  process_progress().set_step(state_.step);
  state_.samples += num_sequences * data_ranks;
  state_.tokens += recipe_.step_tokens ? trained_tokens(recipe_, state_.step, controls_.clock()) -
                                             trained_tokens(recipe_, state_.step - 1, controls_.clock())
                                       : num_sequences * seq_len * data_ranks;
  state_.data = data_.cursor();
  state_.controls.expire(state_.step);
}

void Trainer::warn_of_loss(const std::string& warning) {
  if (!warning.empty())
    context_.reporter.event("warning", fmt::format("step {}: {}", state_.step, warning),
                            {{"step", state_.step}});
}

void Trainer::announce(AnnouncedEvent announced) {
  hooks_.announce(std::move(announced), state_.step, figures_.now(state_), state_.eval);
}

void Trainer::require_all_ranks(const std::string& what) {
  if (is_shared()) hooks_.require_all_ranks(what);
}

void Trainer::require_owner() const {
  if (context_.require_owner) context_.require_owner();
}

Trainer::Trainer(const TrainConfig& config, const RunInfo& info, TrainerContext context)
    : recipe_(config),
      info_(info),
      context_(std::move(context)),
      controls_(recipe_, info.num_samples, state_),
      pass_(recipe_, context_),
      tuning_(recipe_, context_),
      update_(recipe_, context_, pass_.units(), info.num_samples),
      data_(recipe_, context_, context_.num_nodes),
      figures_(info, context_, pass_.layout()),
      evaluations_(recipe_, info.run_dir, context_, pass_.model(), pass_.units(),
                   evaluates_ema(config) ? update_.average() : nullptr, figures_.throughput()),
      profiler_(config.profile, {info.run_dir + "/profile", context_.world.rank(), !context_.device.is_cpu()},
                context_.reporter),
      hooks_(recipe_, info_, controls_.clock(), context_.callbacks, context_.world, context_.local_rank,
             context_.reporter),
      checkpoints_({recipe_, info_, context_, state_, controls_, pass_, update_, data_, figures_,
                    evaluations_, hooks_}) {
  context_.checkpoint.route = compute_route(context_.device, recipe_.precision);  // with tuned products
}

void Trainer::tune(const Batch& batch) {
  pass_.run(batch, state_.step);
  tuning_.choose(pass_.model().activation_memory());
  context_.checkpoint.route = compute_route(context_.device, recipe_.precision);
}

void Trainer::load(const CheckpointInfo& info) {
  checkpoints_.load(info);
  halt_.reason.clear();
  halt_.paused = false;
}

}  // namespace tycho
