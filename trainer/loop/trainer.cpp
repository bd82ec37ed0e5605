// The loop. Read fit() and step() first; the rest serves them.
#include "trainer/loop/trainer.h"

#include <ATen/ops/stack.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/config/data_stages.h"
#include "trainer/device/device.h"
#include "trainer/loop/loss_by_position.h"
#include "trainer/loop/replica_check.h"
#include "trainer/metrics/format.h"
#include "trainer/parallel/gather_texts.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/restore/unit_tensors.h"

namespace tycho {
namespace {

constexpr int64_t kCompareEvery = 100;  // steps between two looks at all tensors

double peak_lr(const OptimizerConfig& config) {
  return std::visit([](const auto& kind) { return kind.lr; }, config.value);
}

[[noreturn]] void stop_diverged(const TrainState& state, const std::string& what) {
  fail(ExitCode::kNumerics,
       "[trainer] {} at step {}: training has diverged and stops before it damages the weights. Checkpoints "
       "are untouched; resume from one with a lower optimizer.lr, a longer scheduler.t_warmup or a tighter "
       "clip.norm, or skip such steps with guard.action = \"skip\"",
       what, state.step + 1);
}

}  // namespace

int Trainer::fit() {
  const auto start = std::chrono::steady_clock::now();
  announce(Event::kFitStart);
  if (config_.eval.first && state_.step == 0) state_.eval_open = true;
  if (config_.icl.first && state_.step == 0) state_.icl_open = true;
  go_on();
  compare_ranks();
  try {
    if (state_.eval_open || state_.icl_open) settle_step();
    advance(info_.total_steps);
    profiler_.end();
    if (finished()) warn_of_loss(loss_watch_.end());
    announce_signal();
    announce(Event::kFitEnd, {{"reason", finished() ? "done" : stop_reason_}});
    boundary();
  } catch (const Error& error) {
    // Where one rank alone has failed, the others are in the middle of a step and cannot save.
    const bool all_can_save = failed_together_ || context_.world.size() == 1;
    if (error.code() != ExitCode::kRecipe || !all_can_save) throw;
    const bool together = std::exchange(failed_together_, false);
    save_now();
    failed_together_ = together;
    throw Error(std::string(error.what()) + ". The run stopped with a checkpoint", error.code());
  }
  save_last();
  boundary();  // what callbacks of the last checkpoints did
  hooks_.report_costs(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return finished() ? 0 : signal_;
}

void Trainer::go_on() {
  stop_reason_.clear();
  signal_ = first_signal(context_.world, context_.stop);
}

void Trainer::advance(int64_t until_step) {
  while (state_.step < until_step && going_on()) {
    const bool stepped = step();
    if (stepped && (due(config_.eval.every) || finished())) state_.eval_open = true;
    if (stepped && evaluations_.has_tasks() && (due(config_.icl.every) || finished())) state_.icl_open = true;
    between_steps(stepped && due(config_.ckpt.every) && !finished());
  }
}

void Trainer::between_steps(bool save_due) {
  settle_step();
  compare_ranks();
  if (save_due || context_.saver.has_wanted() || context_.saver.is_retry_due(state_.step)) save();
  context_.saver.poll();
  announce_saved();
  wait_while_paused();
  throughput_.add_pause(context_.saver.take_pause_s());
}

void Trainer::compare_ranks() {
  if (!context_.paranoid) return;
  failed_together_ = true;  // should they differ
  require_same_facts(context_.world, state_facts(state_, now_, lr_at(state_.step)), state_.step);
  if (!std::exchange(compared_, true) || state_.step % kCompareEvery == 0 || finished())
    require_same_facts(context_.world,
                       tensor_facts(pass_.units().owned(), update_.optimizer(), update_.average()),
                       state_.step, copy_.rank());
  failed_together_ = false;
}

// The boundary between two steps: what was asked for, and evaluations that are due, which may ask for more.
void Trainer::settle_step() {
  boundary();
  if (!(state_.eval_open || state_.icl_open) || signal_ != 0) return;
  if (state_.eval_open && (evaluate() || !evaluations_.has_sets())) state_.eval_open = false;
  if (state_.icl_open && evaluations_.evaluate_tasks(state_.step)) state_.icl_open = false;
  boundary();
}

bool Trainer::step() {
  if (!ask_schedule()) return false;
  process_progress().set_step(state_.step);
  const InPhase phase("in a step");
  comm_before_ = process_progress().comm_time();
  const ProfiledStep profiled(profiler_, state_.step + 1);
  const auto start = std::chrono::steady_clock::now();
  if (data_.enter_stage(stage_at(config_, state_.step, clock_total_, clock_), state_)) loss_watch_.restart();
  if (state_.data.sample == 0) announce(Event::kEpochStart);
  announce(Event::kBatchStart,
           {{"batch", {{"sequences", global_batch_sequences(config_)}, {"seq_len", config_.seq_len}}}});
  const Batch batch = data_.next();  // a pure function of (recipe, step)
  std::optional<LossByPosition> by_position;
  if (due(config_.log.loss_by_position, /*ahead=*/1)) by_position.emplace(config_.seq_len, context_.device);
  const BatchSums sums = pass_.run(batch, state_.step, observers(by_position));
  const GradNorm norm = update_.grad_norm(now_.clip);

  // The one place of a step where the host waits for the device.
  const Tensor numbers_2 = at::stack({sums.loss_1, norm.norm_1.to(at::kDouble)}).cpu();
  context_.world.check();
  const double loss = numbers_2.const_data_ptr<double>()[0] * sums.token_weight;
  const double grad_norm = numbers_2.const_data_ptr<double>()[1];
  announce(Event::kGradsReady, Json::object(), grad_norm);
  const double lr = lr_at(state_.step);
  if (may_update(loss, grad_norm)) update_.step(now_.clip, lr, norm, state_.step, state_.skipped);

  // Before the first thing that is written of it.
  require_owner();
  const int64_t epoch = state_.data.epoch;
  state_.step += 1;
  process_progress().set_step(state_.step);
  state_.samples += batch.num_sequences * data_ranks_.size();
  state_.tokens += config_.step_tokens ? trained_tokens(config_, state_.step, clock_) -
                                             trained_tokens(config_, state_.step - 1, clock_)
                                       : batch.num_sequences * batch.seq_len * data_ranks_.size();
  state_.data = data_.cursor();
  state_.controls.expire(state_.step);
  record(batch, loss, lr, grad_norm,
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (by_position) {
    by_position->sum_over(context_.mesh.group(kLossAxes));
    if (context_.world.rank() == 0) context_.reporter.table(state_.step, by_position->table());
  }
  announce(Event::kBatchEnd);
  if (state_.data.epoch != epoch) announce(Event::kEpochEnd, {{"ended", epoch}});
  return true;
}

BatchObservers Trainer::observers(std::optional<LossByPosition>& by_position) {
  BatchObservers observers;
  if (hooks_.wants(Event::kAfterForward, state_.step + 1))
    observers.after_forward = [this](Json streams) {
      announce(Event::kAfterForward, {{"activations", std::move(streams)}});
    };
  if (by_position)
    observers.after_losses = [&by_position](const TokenLosses& losses) { by_position->add(losses); };
  return observers;
}

// Before anything of the step is done: what fails leaves the run between two steps, where it can be saved.
bool Trainer::ask_schedule() {
  failed_together_ = true;  // should it fail
  const bool asked = hooks_.ask_schedule(state_.step, last_step_);
  failed_together_ = false;
  return asked;
}

void Trainer::warn_of_loss(const std::string& warning) {
  if (!warning.empty())
    context_.reporter.event("warning", fmt::format("step {}: {}", state_.step, warning),
                            {{"step", state_.step}});
}

void Trainer::require_all_ranks(const std::string& what) {
  if (is_shared()) hooks_.require_all_ranks(what);
}

void Trainer::announce(Event event, Json facts, double grad_norm) {
  in_step_ = event == Event::kBatchStart || event == Event::kAfterForward || event == Event::kGradsReady;
  const struct Reset {
    bool& in_step;
    ~Reset() { in_step = false; }
  } reset{in_step_};
  if (!hooks_.wants(event, recorded_step())) return;
  const Range range("callbacks of ", enum_name(event));
  StepMetrics metrics = metrics_now();
  if (grad_norm >= 0) metrics.grad_norm = grad_norm;
  hooks_.announce(event_info(event, metrics, std::move(facts)));
}

// Of the newest step; of none but what is counted before this process made one.
StepMetrics Trainer::metrics_now() const {
  if (last_step_) return *last_step_;
  StepMetrics metrics;
  metrics.step = state_.step, metrics.tokens = state_.tokens, metrics.samples = state_.samples,
  metrics.epoch = state_.data.epoch;
  return metrics;
}

EventInfo Trainer::event_info(Event event, const StepMetrics& metrics, Json facts) const {
  return {event, metrics, info_, &state_.eval, std::move(facts)};
}

void Trainer::announce_saved() {
  for (const Json& saved : context_.saver.take_news()) announce(Event::kCkptSaved, saved);
}

void Trainer::wait_for_save() {
  const InPhase phase("saving");
  context_.saver.wait(/*last=*/true);
  announce_saved();
}

void Trainer::announce_signal() {
  if (signal_ != 0) announce(Event::kSignal, {{"kind", std::string("SIG") + sigabbrev_np(signal_)}});
}

// All ranks see the same two numbers, so they decide alike.
bool Trainer::may_update(double loss, double grad_norm) {
  const bool finite = std::isfinite(loss) && std::isfinite(grad_norm);
  if (finite && grad_norm <= config_.guard.max_grad_norm.value_or(grad_norm)) {
    state_.skipped_in_a_row = 0;
    return true;
  }
  std::string what = fmt::format("loss {} and gradient norm {}", exact_text(loss), exact_text(grad_norm));
  if (finite) what += fmt::format(", above guard.max_grad_norm = {},", *config_.guard.max_grad_norm);
  failed_together_ =
      config_.guard.action == GuardAction::kStop || state_.skipped_in_a_row + 1 > config_.guard.max_skips;
  if (config_.guard.action == GuardAction::kStop) stop_diverged(state_, what);
  if (failed_together_)
    stop_diverged(state_, fmt::format("{} after {} skipped steps in a row", what, state_.skipped_in_a_row));
  ++state_.skipped;
  ++state_.skipped_in_a_row;
  context_.reporter.event("warning", fmt::format("step {} skipped: {}", state_.step + 1, what),
                          {{"step", state_.step + 1}, {"skipped", state_.skipped}});
  announce(Event::kError, {{"message", what}});
  return false;
}

Trainer::Trainer(const TrainConfig& config, const RunInfo& info, TrainerContext context)
    : config_(config),
      now_(config),
      info_(info),
      clock_total_(total_steps(config, info.num_samples)),
      context_(std::move(context)),
      copy_(context_.mesh.group(kCopyAxes)),
      data_ranks_(context_.mesh.group(kDataAxes)),
      pass_(config_, context_),
      update_(config_, context_, pass_.units(), info.num_samples),
      data_(config_, context_, context_.num_machines),
      schedule_(make_schedule(config, clock_total_, info.num_samples)),
      throughput_(info),
      evaluations_(config_, info.run_dir, context_, pass_.model(), pass_.units(),
                   evaluates_ema(config) ? update_.average() : nullptr, throughput_),
      profiler_(config.profile, {info.run_dir + "/profile", context_.world.rank(), !context_.device.is_cpu()},
                context_.reporter),
      hooks_(config_, info_, clock_, context_.callbacks, context_.world, context_.local_rank,
             context_.reporter),
      loss_watch_(pass_.layout().vocab_size) {}

double Trainer::lr_at(int64_t steps_done) const {
  return state_.controls.lr_of(scheduled_lr(steps_done), steps_done);
}

double Trainer::scheduled_lr(int64_t steps_done) const {
  return peak_lr(now_.optimizer) * schedule_factor(schedule_, steps_done) * hooks_.last_factor();
}

void Trainer::record(const Batch& batch, double loss, double lr, double grad_norm, double step_s) {
  const int64_t tokens = batch.num_sequences * batch.seq_len * data_ranks_.size();
  const ModelLayout& layout = pass_.layout();
  throughput_.add_step(work_of(tokens, layout.flops_per_token_full(batch.seq_len),
                               layout.flops_per_token_causal(batch.seq_len)),
                       step_s);
  StepMetrics metrics;
  metrics.step = state_.step;
  metrics.tokens = state_.tokens;
  metrics.samples = state_.samples;
  metrics.epoch = state_.data.epoch;
  metrics.loss = loss;
  metrics.lr = lr;
  metrics.grad_norm = grad_norm;
  metrics.step_s = step_s;
  metrics.data_wait_s = batch.wait_s;
  if (context_.world.size() > 1 && context_.device.is_cpu()) {
    const CommTime comm = process_progress().comm_time();
    metrics.comm_wait_s = comm.wait_s - comm_before_.wait_s;
    metrics.comm_s = comm.transfer_s - comm_before_.transfer_s;
  }
  metrics.memory_bytes = peak_memory_bytes(context_.device);
  throughput_.fill(metrics);
  last_step_ = metrics;
  context_.reporter.step(metrics, due(now_.log.every) || finished());
  context_.saver.trained(metrics.step, step_s);
  warn_of_loss(loss_watch_.step(loss, grad_norm, lr));
}

void Trainer::record_metric(const std::string& name, double value) {
  if (context_.world.rank() == 0) return context_.reporter.metric(recorded_step(), name, value);
  hooks_.record_metric(recorded_step(), name, value);
}

void Trainer::record_event(const std::string& kind, const std::string& text, const Json& facts) {
  if (context_.world.rank() == 0) return context_.reporter.event(kind, text, facts);
  hooks_.record_event(kind, text, facts);
}

void Trainer::save() {
  // The checkpoint before this one may have become durable just now: callbacks hear of every one.
  context_.saver.wait(/*last=*/false);
  announce_saved();
  const Range range("checkpoint");
  const InPhase phase("saving");
  CheckpointMeta meta = context_.checkpoint;
  meta.step = state_.step;
  state_.clock = clock_;
  hooks_.save_state(state_, last_step_);
  state_.order_marks.clear();
  if (context_.world.rank() == 0) state_.order_marks = data_.order_marks();
  meta.train_state = state_.to_json();
  context_.saver.save(std::move(meta), saved_ranges(pass_.units().owned()), update_.optimizer(),
                      update_.average());
}

void Trainer::require_owner() const {
  if (context_.require_owner) context_.require_owner();
}

// The disk may have room again before too much is lost. A run that was told to stop tries once.
void Trainer::save_last() {
  context_.saver.wait(/*last=*/false);
  announce_saved();
  const bool is_due = state_.step > info_.first_step && !context_.saver.has_saved(state_.step);
  if (is_due || context_.saver.has_wanted()) save();
  while (true) {
    context_.saver.wait(/*last=*/signal_ != 0);
    announce_saved();
    if (!context_.saver.must_retry()) return;
    context_.saver.wait_before_retry(context_.stop);
    save();
  }
}

std::string Trainer::save_now() {
  context_.saver.wait(/*last=*/false);
  announce_saved();
  if (!context_.saver.has_saved(state_.step) || context_.saver.has_wanted()) save();
  wait_for_save();
  return context_.saver.saved_path();
}

double Trainer::steps_of(const Duration& length) const {
  return in_steps(length, config_, clock_total_, info_.num_samples);
}

bool Trainer::due(const std::optional<Duration>& every, int64_t ahead) const {
  if (!every) return false;
  const double now = static_cast<double>(state_.step + ahead) + clock_lead(every->unit, config_, clock_);
  return passes_on_clock(now, steps_of(*every));
}

}  // namespace tycho
