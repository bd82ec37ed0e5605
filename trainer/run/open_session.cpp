// An open run: every function of TrainingSession in a few lines, over the parts of the run.
#include "trainer/run/open_session.h"

#include <c10/core/InferenceMode.h>

#include <cmath>
#include <utility>

#include "trainer/base/as_error.h"
#include "trainer/base/error.h"
#include "trainer/base/json_writer.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/device/device.h"
#include "trainer/eval/generate.h"
#include "trainer/run/inspect.h"
#include "trainer/run/live_tensor.h"
#include "trainer/run/native_errors.h"
#include "trainer/run/run_parts.h"
#include "trainer/run/whole_tensor.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/saving/resume.h"

namespace tycho {
namespace {

class OpenRun final : public TrainingSession {
 public:
  OpenRun(const RunRequest& request, std::unique_ptr<Reporter> display, const std::atomic<int>& stop,
          const WorldMaker& make_world)
      : run_(meet_ranks(request, stop, make_world)) {
    register_read_secrets(request);
    guarded([&] { open_run(run_, request, std::move(display), *this); });
  }

  ~OpenRun() override {
    close("closed", {});
    if (run_.callbacks != nullptr) run_.callbacks->set_session(nullptr);
  }

  const SessionFacts& facts() const override { return run_.facts; }
  SessionState state() const override { return session_state(*run_.trainer); }
  const std::vector<ParamInfo>& params() const override { return run_.params; }
  void command(Command command) override { run_.trainer->hooks().queue(std::move(command)); }

  std::vector<StepMetrics> step(int64_t n) override {
    std::vector<StepMetrics> done;
    guarded([&] {
      obey();
      for (int64_t i = 0; i < n && run_.trainer->should_continue(); ++i) {
        if (run_.trainer->step()) done.push_back(*run_.trainer->figures().newest());
        run_.trainer->step_boundary(/*save_due=*/false);
      }
    });
    return done;
  }

  void run_for(const Duration& length) override {
    const auto whole = static_cast<int64_t>(std::ceil(run_.trainer->controls().steps_of(length)));
    guarded([&] {
      obey();
      run_.trainer->advance(run_.trainer->state().step + whole);
    });
  }

  int fit() override {
    return guarded([&] { return run_.trainer->fit(); });
  }

  std::optional<EvalResults> evaluate(const std::string& set) override {
    if (run_.config.eval_data.empty())
      fail(ExitCode::kUsage, "[eval] this recipe has no eval_data: set it before build");
    if (!set.empty() && !run_.config.eval_data.contains(set))
      return run_.trainer->evaluate(set);  // which says so
    return guarded([&] { return run_.trainer->evaluate(set); });
  }

  SavedCheckpoint save() override {
    return guarded([&] {
      return SavedCheckpoint{run_.trainer->checkpoints().save_now(), run_.trainer->state().step};
    });
  }

  SavedCheckpoint load(const std::string& path) override {
    CheckpointInfo info;
    // Read completely, on every rank, before anything changes: the current state may be all that is left.
    together(*run_.world, [&] {
      info = find_checkpoint(path);
      with_own_errors([&] { CheckpointReader(info).verify(); });
    });
    guarded([&] { run_.trainer->load(info); });
    run_.facts.run = run_.trainer->info();
    report_resume(info, run_.recipe, compute_route(run_.device, run_.config.precision), *run_.reporter);
    run_.trainer->controls().report_held(*run_.reporter);
    warn_of_newer(run_.facts.run.run_dir, info.step, *run_.reporter);
    return {info.path, info.step};
  }

  void close(const std::string& reason, std::optional<ExitCode> failure) override {
    if (!std::exchange(closed_, true)) run_.reporter->run_end(reason, failure);
  }

  std::unique_ptr<TensorView> weight(int64_t param) override {
    const auto [unit, i] = run_.places.at(static_cast<size_t>(param));
    run_.trainer->require_all_ranks(run_.params[static_cast<size_t>(param)].name);
    return make_view(whole_tensors().param(unit, i), /*owned=*/run_.facts.is_sharded);
  }
  std::unique_ptr<TensorView> grad(int64_t param) override {
    const auto [unit, i] = run_.places.at(static_cast<size_t>(param));
    run_.trainer->require_all_ranks("the gradient of " + run_.params[static_cast<size_t>(param)].name);
    const Tensor gradient = whole_tensors().grad(unit, i);
    return gradient.defined() ? make_view(gradient, /*owned=*/run_.facts.is_sharded) : nullptr;
  }
  std::unique_ptr<TensorView> moment(int64_t param, const std::string& name) override {
    const auto [unit, i] = run_.places.at(static_cast<size_t>(param));
    const ParamInfo& info = run_.params[static_cast<size_t>(param)];
    const std::vector<StateSpec> specs =
        state_specs(run_.trainer->controls().now().optimizer, run_.trainer->update().rules()[unit][i],
                    ParamSpec{.name = info.name, .shape = info.shape, .init = {}});
    if (std::none_of(specs.begin(), specs.end(),
                     [&](const StateSpec& one) { return one.name == name && one.is_like_parameter(); }))
      return nullptr;
    run_.trainer->require_all_ranks(name + " of " + info.name);
    return make_view(whole_tensors().moment(unit, i, name, run_.trainer->update().optimizer().state()),
                     /*owned=*/true);
  }

  OptimizerState optimizer() const override {
    return {.config = to_json(run_.trainer->controls().now().optimizer),
            .lr = run_.trainer->lr_at(run_.trainer->state().step),
            .clip_norm = run_.trainer->controls().now().clip.norm,
            .groups = list_groups(run_.params, run_.places, run_.trainer->update().rules())};
  }

  double lr_at(int64_t steps_done) const override { return run_.trainer->lr_at(steps_done); }

  std::optional<std::string> generate(const std::string& prompt, const TextOptions& text,
                                      const std::function<void(const std::string&)>& emit) override {
    need_tokenizer();
    run_.trainer->require_all_ranks("text");
    return with_own_errors([&]() -> std::optional<std::string> {
      Generator generator = this->generator();
      const auto result =
          generator.generate({generator.encode(prompt)}, generate_options(text), emit, text_stop());
      return result ? std::optional(result->text) : std::nullopt;
    });
  }

  std::optional<std::vector<int32_t>> generate_tokens(const std::vector<int32_t>& prompt,
                                                      const TextOptions& text) override {
    if (!text.stop.empty()) need_tokenizer();
    GenerateOptions options = generate_options(text);
    options.logprobs = true;  // keeps the tokens
    run_.trainer->require_all_ranks("text");
    return with_own_errors([&]() -> std::optional<std::vector<int32_t>> {
      Generator generator = this->generator();
      generator.check_prompt(prompt);
      const auto result = generator.generate(
          {prompt}, options, [](const std::string&) {}, text_stop());
      return result ? std::optional(result->token_ids) : std::nullopt;
    });
  }

  std::unique_ptr<TensorView> logits(const std::vector<int32_t>& tokens, bool every_position) override {
    run_.trainer->require_all_ranks("logits");
    return with_own_errors([&] {
      const Tensor logits = logits_of(run_.config, run_.trainer->pass().units(), run_.device, tokens,
                                      {.every_position = every_position}, run_.trainer->pass().region(),
                                      run_.trainer->pass().stage());
      return make_view(every_position ? logits : logits.select(0, 0), /*owned=*/true);
    });
  }

  std::vector<std::unique_ptr<TensorView>> activations(const std::vector<int32_t>& tokens) override {
    run_.trainer->require_all_ranks("activations");
    return with_own_errors([&] {
      std::vector<Tensor> streams;
      logits_of(run_.config, run_.trainer->pass().units(), run_.device, tokens, {.streams = &streams},
                run_.trainer->pass().region(), run_.trainer->pass().stage());
      std::vector<std::unique_ptr<TensorView>> views;
      for (const Tensor& stream : streams) views.push_back(make_view(stream, /*owned=*/true));
      return views;
    });
  }

  std::unique_ptr<TensorView> attention(const std::vector<int32_t>& tokens, int64_t layer) override {
    run_.trainer->require_all_ranks("attention");
    if (layer < 0 || layer >= facts().num_layers)
      fail(ExitCode::kUsage, "[attention] expected a layer from 1 to {}, got {}", facts().num_layers,
           layer + 1);
    if (run_.trainer->pass().region().is_shared() || run_.trainer->pass().stage().is_shared())
      fail(ExitCode::kUsage,
           "[attention] expected a model that one rank holds whole, got parallel.tp or parallel.pp: open the "
           "run without them");
    return with_own_errors([&] {
      Tensor weights;
      logits_of(run_.config, run_.trainer->pass().units(), run_.device, tokens,
                {.attention_block = layer, .attention = &weights}, run_.trainer->pass().region(),
                run_.trainer->pass().stage());
      return make_view(weights[0], /*owned=*/true);
    });
  }

  std::vector<int32_t> encode(const std::string& text) const override {
    return need_tokenizer().encode(text);
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    return need_tokenizer().decode(tokens);
  }

  std::vector<PeekedSequence> peek(int64_t n) const override {
    return peek_sequences(*run_.trainer->data().new_loader(run_.trainer->state()), n);
  }

  void profile_begin() override {
    with_own_errors([&] { run_.trainer->profiler().start(); });
  }
  Json profile_end() override {
    return with_own_errors([&] { return run_.trainer->profiler().finish(run_.trainer->state().step); });
  }
  ProfileState profile_state() const override {
    return {run_.trainer->profiler().phase(), run_.trainer->profiler().newest_trace()};
  }

  void metric(const std::string& name, double value) override {
    run_.trainer->hooks().record_metric(run_.trainer->recorded_step(), name, value);
  }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    run_.trainer->hooks().record_event(kind, text, facts);
  }

  MemoryUse memory() const override {
    return {memory_bytes(run_.device), peak_memory_bytes(run_.device), device_memory_bytes(run_.device),
            run_.memory_before};
  }

 private:
  // An error reaches the ranks that would wait for this one. There is no world while one is made for GPUs.
  template <class Body>
  auto guarded(Body&& body) -> decltype(body()) {
    if (run_.trainer) run_.trainer->forget_failure();
    try {
      return with_own_errors(body);
    } catch (const std::exception& error) {
      abort(as_error(error));
      throw;
    }
  }

  /// Leaves the world with an error. Throws when the world had failed before for another reason: all ranks
  /// end with that one.
  void abort(const Error& error) {
    if (!run_.world || (run_.trainer && run_.trainer->failed_together())) return;
    const Error end = run_.world->abort(error);
    if (end.code() != error.code() || std::string(end.what()) != error.what()) throw end;
  }

  // Commands between two calls take effect before the next step.
  void obey() {
    run_.trainer->forget_stop();
    if (run_.trainer->hooks().has_queued()) run_.trainer->step_boundary(/*save_due=*/false);
  }

  Generator generator() const {
    return {run_.config, run_.trainer->pass().units(),  run_.tokenizer.get(),
            run_.device, run_.trainer->pass().region(), run_.trainer->pass().stage()};
  }
  WholeTensors whole_tensors() const {
    return {run_.config, run_.trainer->pass().units(), run_.trainer->pass().region(),
            run_.trainer->pass().stage()};
  }
  // Ranks that share the parameters make every token together, and signals reach them at different ones.
  const std::atomic<int>& text_stop() const { return run_.facts.is_sharded ? never_ : run_.stop; }
  const Tokenizer& need_tokenizer() const {
    if (!run_.tokenizer)
      fail(ExitCode::kUsage, "[tokenizer] this recipe has none: set tokenizer = \"PATH/tokenizer.json\"");
    return *run_.tokenizer;
  }

  // The backward pass is ours: autograd is disabled.
  const c10::InferenceMode no_autograd_;
  RunParts run_;
  const std::atomic<int> never_ = 0;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<TrainingSession> open_session(const RunRequest& request, std::unique_ptr<Reporter> display,
                                              const std::atomic<int>& stop) {
  return open_session(request, std::move(display), stop, open_world);
}

std::unique_ptr<TrainingSession> open_session(const RunRequest& request, std::unique_ptr<Reporter> display,
                                              const std::atomic<int>& stop, const WorldMaker& make_world) {
  return std::make_unique<OpenRun>(request, std::move(display), stop, make_world);
}

}  // namespace tycho
