// An open run. long because: it is one class, every function of TrainingSession in a few lines.
#include "trainer/run/open_session.h"

#include <c10/core/InferenceMode.h>

#include <cmath>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/json_writer.h"
#include "trainer/checkpoint/owned_files.h"
#include "trainer/checkpoint/run_lock.h"
#include "trainer/config/config_io.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/device/device.h"
#include "trainer/generate/generate.h"
#include "trainer/loggers/sink.h"
#include "trainer/loop/trainer.h"
#include "trainer/parallel/gather_texts.h"
#include "trainer/parallel/mesh.h"
#include "trainer/parallel/world.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/restore/resume.h"
#include "trainer/run/canonical_route.h"
#include "trainer/run/describe_run.h"
#include "trainer/run/enough_memory.h"
#include "trainer/run/inspect.h"
#include "trainer/run/live_tensor.h"
#include "trainer/run/native_errors.h"
#include "trainer/run/recipe_check.h"
#include "trainer/run/run_data.h"
#include "trainer/run/whole_tensor.h"
#include "trainer/run_folder/restarts.h"

namespace tycho {
namespace {

class OpenRun final : public TrainingSession {
 public:
  OpenRun(const RunRequest& request, std::unique_ptr<Reporter> display, const std::atomic<int>& stop)
      : recipe_(config_to_json(request.config)),
        config_(request.config),
        stop_(stop),
        world_(open_world(
            request.place,
            {.stop = &stop,
             .shared_dir = std::filesystem::absolute(run_folder_path(request.config)).parent_path()},
            config_.parallel.reduce == GradientOrder::kCanonical ? SumOrder::kTree : SumOrder::kRanks)) {
    register_read_secrets(request);
    guarded([&] { open(request, std::move(display)); });
  }

  ~OpenRun() override {
    close("closed", {});
    if (callbacks_ != nullptr) callbacks_->set_session(nullptr);
  }

  const SessionFacts& facts() const override { return facts_; }
  SessionState state() const override { return session_state(*trainer_); }
  const std::vector<ParamInfo>& params() const override { return params_; }
  void command(Command command) override { trainer_->queue(std::move(command)); }

  std::vector<StepMetrics> step(int64_t n) override {
    std::vector<StepMetrics> done;
    guarded([&] {
      obey();
      for (int64_t i = 0; i < n && trainer_->going_on(); ++i) {
        trainer_->step();
        done.push_back(*trainer_->last_step());
        trainer_->between_steps(/*save_due=*/false);
      }
    });
    return done;
  }

  void run_for(const Duration& length) override {
    const double steps = in_steps(length, config_, facts_.run.total_steps, facts_.run.num_samples);
    const auto whole = static_cast<int64_t>(std::ceil(steps));
    guarded([&] {
      obey();
      trainer_->advance(trainer_->state().step + whole);
    });
  }

  int fit() override {
    return guarded([&] { return trainer_->fit(); });
  }

  std::optional<EvalResults> evaluate(const std::string& set) override {
    if (config_.eval_data.empty())
      fail(ExitCode::kUsage, "[eval] this recipe has no eval_data: set it before build");
    if (!set.empty() && !config_.eval_data.contains(set)) return trainer_->evaluate(set);  // which says so
    return guarded([&] { return trainer_->evaluate(set); });
  }

  SavedCheckpoint save() override {
    guarded([&] { trainer_->save_now(); });
    const CheckpointInfo newest = find_checkpoint(facts_.run.run_dir);
    return {newest.path, newest.step};
  }

  SavedCheckpoint load(const std::string& path) override {
    CheckpointInfo info;
    // Read completely, on every rank, before anything changes: the current state may be all that is left.
    together(*world_, [&] {
      info = find_checkpoint(path);
      with_own_errors([&] { CheckpointReader(info).verify(); });
    });
    guarded([&] { trainer_->load(info); });
    report_resume(info, recipe_, compute_route(device_, config_.precision), *reporter_);
    warn_of_newer(facts_.run.run_dir, info.step, *reporter_);
    return {info.path, info.step};
  }

  void close(const std::string& reason, std::optional<ExitCode> failure) override {
    if (!std::exchange(closed_, true)) reporter_->run_end(reason, failure);
  }

  std::unique_ptr<TensorView> weight(int64_t param) override {
    const auto [unit, i] = places_.at(static_cast<size_t>(param));
    trainer_->require_all_ranks(params_[static_cast<size_t>(param)].name);
    return make_view(whole_tensors().param(unit, i), /*owned=*/facts_.is_sharded);
  }
  std::unique_ptr<TensorView> grad(int64_t param) override {
    const auto [unit, i] = places_.at(static_cast<size_t>(param));
    trainer_->require_all_ranks("the gradient of " + params_[static_cast<size_t>(param)].name);
    const Tensor gradient = whole_tensors().grad(unit, i);
    return gradient.defined() ? make_view(gradient, /*owned=*/facts_.is_sharded) : nullptr;
  }

  OptimizerState optimizer() const override {
    return {.config = to_json(trainer_->config().optimizer),
            .lr = trainer_->lr_at(trainer_->state().step),
            .clip_norm = trainer_->config().clip.norm,
            .groups = list_groups(params_, places_, trainer_->rules())};
  }

  double lr_at(int64_t steps_done) const override { return trainer_->lr_at(steps_done); }

  std::optional<std::string> generate(const std::string& prompt, const TextOptions& text,
                                      const std::function<void(const std::string&)>& emit) override {
    need_tokenizer();
    trainer_->require_all_ranks("text");
    return with_own_errors([&]() -> std::optional<std::string> {
      Generator generator = this->generator();
      const auto result =
          generator.generate(generator.encode(prompt), generate_options(text), 0, emit, text_stop());
      return result ? std::optional(result->text) : std::nullopt;
    });
  }

  std::optional<std::vector<int32_t>> generate_tokens(const std::vector<int32_t>& prompt,
                                                      const TextOptions& text) override {
    if (!text.stop.empty()) need_tokenizer();
    GenerateOptions options = generate_options(text);
    options.logprobs = true;  // keeps the tokens
    trainer_->require_all_ranks("text");
    return with_own_errors([&]() -> std::optional<std::vector<int32_t>> {
      Generator generator = this->generator();
      generator.check_prompt(prompt);
      const auto result = generator.generate(
          prompt, options, 0, [](const std::string&) {}, text_stop());
      return result ? std::optional(result->token_ids) : std::nullopt;
    });
  }

  std::unique_ptr<TensorView> logits(const std::vector<int32_t>& tokens, bool every_position) override {
    trainer_->require_all_ranks("logits");
    return with_own_errors([&] {
      const Tensor logits =
          logits_of(config_, trainer_->units(), device_, tokens, {.every_position = every_position},
                    trainer_->region(), trainer_->stage());
      return make_view(every_position ? logits : logits.select(0, 0), /*owned=*/true);
    });
  }

  std::vector<std::unique_ptr<TensorView>> activations(const std::vector<int32_t>& tokens) override {
    trainer_->require_all_ranks("activations");
    return with_own_errors([&] {
      std::vector<Tensor> streams;
      logits_of(config_, trainer_->units(), device_, tokens, {.streams = &streams}, trainer_->region(),
                trainer_->stage());
      std::vector<std::unique_ptr<TensorView>> views;
      for (const Tensor& stream : streams) views.push_back(make_view(stream, /*owned=*/true));
      return views;
    });
  }

  std::vector<int32_t> encode(const std::string& text) const override {
    return need_tokenizer().encode(text);
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    return need_tokenizer().decode(tokens);
  }

  std::vector<PeekedSequence> peek(int64_t n) const override {
    return peek_sequences(*trainer_->loader_at(trainer_->state().data), n);
  }

  void profile_begin() override {
    with_own_errors([&] { trainer_->profiler().start(); });
  }
  Json profile_end() override {
    return with_own_errors([&] { return trainer_->profiler().finish(trainer_->state().step); });
  }
  ProfileState profile_state() const override {
    return {trainer_->profiler().phase(), trainer_->profiler().newest_trace()};
  }

  void metric(const std::string& name, double value) override { trainer_->record_metric(name, value); }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    trainer_->record_event(kind, text, facts);
  }

  MemoryUse memory() const override {
    return {memory_bytes(device_), peak_memory_bytes(device_), device_memory_bytes(device_), memory_before_};
  }

 private:
  // An error reaches the ranks that would wait for this one. There is no world while one is made for GPUs.
  template <class Body>
  auto guarded(Body&& body) -> decltype(body()) {
    if (trainer_) trainer_->forget_failure();
    try {
      return with_own_errors(body);
    } catch (const std::exception& error) {
      const auto* own = dynamic_cast<const Error*>(&error);
      leave(own != nullptr ? *own : Error(error.what()));
      throw;
    }
  }

  /// Throws when the world had broken before, for another reason: all ranks end with that.
  void leave(const Error& error) {
    if (!world_ || (trainer_ && trainer_->failed_together())) return;
    const Error end = world_->leave(error);
    if (end.code() != error.code() || std::string(end.what()) != error.what()) throw end;
  }

  void open(const RunRequest& request, std::unique_ptr<Reporter> display) {
    const InPhase phase("opening the run");
    require_same_recipe(*world_, request);
    const std::string run_dir = run_folder_path(config_);
    together(*world_, [&] { with_own_errors([&] { look_around(request, run_dir); }); });
    world_ = with_device(std::move(world_), device_);
    mesh_.emplace(mesh_shape(config_.parallel, world_->size()), *world_);
    together(*world_, [&] { take_folder(run_dir, std::move(display)); });
    const std::vector<CheckpointInfo> candidates = resume_candidates(config_, run_dir, *world_);
    if (!candidates.empty()) facts_.run.first_step = candidates.front().step;
    together(*world_, [&] { record_start(request, run_dir, candidates); });
    world_->keep_collectives_in(run_dir + "/" + kCollectivesFolder);
    reporter_->run_start(facts_.run);
    report_chats(config_, chats_, candidates, *reporter_);
    try {
      with_own_errors([&] { make_trainer(request, candidates); });
    } catch (const std::exception& error) {
      const auto* own = dynamic_cast<const Error*>(&error);
      reporter_->run_end(std::string("failed: ") + error.what(),
                         own != nullptr ? own->code() : ExitCode::kFailure);
      if (callbacks_ != nullptr) callbacks_->set_session(nullptr);
      throw;
    }
  }

  // All that can be wrong before the run folder is touched.
  void look_around(const RunRequest& request, const std::string& run_dir) {
    require_no_problems(check_config(config_), ExitCode::kRecipe);
    require_no_problems(check_config(config_, world_->size()), ExitCode::kTopology);
    set_threads(config_.threads, request.place);
    device_ = choose_device(config_.device, request.place.local_rank);
    require_canonical_route(config_, device_);
    memory_before_ = memory_bytes(device_);
    require_memory(config_, device_, request);
    tokenizer_text_ = read_tokenizer(config_, model_layout(config_.model));
    chats_ = open_chats(config_, stop_);
    facts_.run = describe_run(config_, request, device_, run_dir);
    check_later_data(config_);
    facts_.rank = world_->rank();
    facts_.recipe = recipe_;
    facts_.num_layers = model_layout(config_.model).num_blocks;
    facts_.has_tokenizer = !tokenizer_text_.empty();
    if (facts_.has_tokenizer) tokenizer_ = load_tokenizer(config_.tokenizer);
  }

  // Rank 0 owns it, and writes all that is in it.
  void take_folder(const std::string& run_dir, std::unique_ptr<Reporter> display) {
    if (world_->rank() != 0) {
      reporter_ = std::make_unique<Reporter>();
      return;
    }
    FileOps& files = real_files();
    require_own_folder(run_dir);
    make_dirs(files, run_dir);
    lock_ = std::make_unique<RunLock>(files, run_dir, RunLock::kStale_s,
                                      [&](const std::string& text) { wait_for_folder(text, display.get()); });
    files_.emplace(files, *lock_);
    reporter_ = make_run_reporter(run_dir, config_.log, std::move(display), *files_);
  }

  // The owner of the folder is silent: says so once, and obeys a stop.
  void wait_for_folder(const std::string& text, Reporter* display) {
    if (display != nullptr && !std::exchange(said_wait_, true)) display->event("wait", text, Json::object());
    if (const int signal = stop_; signal != 0)
      fail(static_cast<ExitCode>(128 + signal), "[lock] stopped while waiting for the run folder");
  }

  // Leave the folder of a finished run as it is: this start trains nothing.
  void record_start(const RunRequest& request, const std::string& run_dir,
                    const std::vector<CheckpointInfo>& candidates) {
    if (world_->rank() != 0) return;
    const bool is_finished = !candidates.empty() && candidates.front().step >= facts_.run.total_steps;
    if (!is_finished && !request.force) require_progress(run_dir, facts_.run.first_step);
    if (!is_finished || !holds_record(run_dir))
      write_run_folder(*files_, run_dir, request, run_versions(device_, config_.precision));
  }

  // Commands between two calls take effect before the next step.
  void obey() {
    trainer_->go_on();
    if (trainer_->has_queued()) trainer_->between_steps(/*save_due=*/false);
  }

  void make_trainer(const RunRequest& request, const std::vector<CheckpointInfo>& candidates) {
    if (request.paranoid && world_->size() == 1)
      reporter_->event("warning", "--paranoid compares ranks, but this run has only one", Json::object());
    for (const std::string& note : speed_notes(device_, config_))
      reporter_->event("warning", note, Json::object());
    std::optional<CheckpointStore> store;
    if (lock_)
      store.emplace(*files_, facts_.run.run_dir + "/checkpoints", config_.ckpt.keep, lock_->epoch(),
                    [this] { lock_->check(); });
    FileOps& files = files_ ? static_cast<FileOps&>(*files_) : real_files();  // rank 0 holds the lock
    saver_ =
        std::make_unique<Saver>(std::move(store), config_.ckpt, ranks_of_group(mesh_->shape(), kCopyAxes, 0),
                                files, *world_, *reporter_);
    CheckpointMeta meta = describe_checkpoints(config_, request, device_, mesh_->shape(), tokenizer_text_);
    callbacks_ = request.callbacks;
    if (callbacks_ != nullptr) callbacks_->set_session(this);
    TrainerContext context{device_,         *world_,           *mesh_,
                           *reporter_,      *saver_,           std::move(meta),
                           stop_,           request.callbacks, request.place.local_rank,
                           request.paranoid};
    context.num_machines = request.place.num_machines();
    if (lock_) context.require_owner = [this] { lock_->check_often(); };
    trainer_ = std::make_unique<Trainer>(config_, facts_.run, std::move(context));
    facts_.is_sharded = trainer_->is_shared();
    const ModelLayout layout = model_layout(config_.model);
    params_ = list_params(layout, trainer_->rules());
    places_ = list_places(layout);
    if (candidates.empty()) {
      trainer_->initialise();
    } else {
      const CheckpointInfo loaded = trainer_->resume(candidates);
      facts_.checkpoint = loaded.path;
      facts_.run.first_step = loaded.step;
      require_same_checkpoint(*world_, loaded);
      report_resume(loaded, recipe_, compute_route(device_, config_.precision), *reporter_);
      facts_.asks_for_other = recipe_changes(loaded.manifest.at("recipe"), recipe_, kOfTheProcess);
    }
  }

  Generator generator() const {
    return {config_, trainer_->units(), tokenizer_.get(), device_, trainer_->region(), trainer_->stage()};
  }
  WholeTensors whole_tensors() const {
    return {config_, trainer_->units(), trainer_->region(), trainer_->stage()};
  }
  // Ranks that share the parameters make every token together, and signals reach them at different ones.
  const std::atomic<int>& text_stop() const { return facts_.is_sharded ? never_ : stop_; }
  const Tokenizer& need_tokenizer() const {
    if (!tokenizer_)
      fail(ExitCode::kUsage, "[tokenizer] this recipe has none: set tokenizer = \"PATH/tokenizer.json\"");
    return *tokenizer_;
  }

  // The backward pass is ours: autograd is disabled.
  const c10::InferenceMode no_autograd_;
  Json recipe_;
  TrainConfig config_;
  const std::atomic<int>& stop_;
  const std::atomic<int> never_ = 0;
  std::unique_ptr<Communicator> world_;  // of the ranks of this run
  std::optional<Mesh> mesh_;
  SessionFacts facts_;
  std::string tokenizer_text_;
  std::unique_ptr<Tokenizer> tokenizer_;
  at::Device device_ = at::kCPU;
  int64_t memory_before_ = 0;
  std::vector<std::shared_ptr<const ChatDataset>> chats_;
  std::unique_ptr<RunLock> lock_;
  std::optional<OwnedFiles> files_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<ParamInfo> params_;
  std::vector<std::pair<size_t, size_t>> places_;  // of each parameter: unit, position in it
  CallbackSource* callbacks_ = nullptr;
  bool closed_ = false, said_wait_ = false;
};

}  // namespace

std::unique_ptr<TrainingSession> open_session(const RunRequest& request, std::unique_ptr<Reporter> display,
                                              const std::atomic<int>& stop) {
  return std::make_unique<OpenRun>(request, std::move(display), stop);
}

}  // namespace tycho
