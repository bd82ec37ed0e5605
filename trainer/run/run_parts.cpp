// Opening a run: what can be wrong is found before the folder is touched, and the folder is taken before
// memory is.
#include "trainer/run/run_parts.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "trainer/base/as_error.h"
#include "trainer/base/error.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/comm/world.h"
#include "trainer/data/chat/chat_template.h"
#include "trainer/device/device.h"
#include "trainer/families/config.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/tuned_products.h"
#include "trainer/layout/fp8_layers.h"
#include "trainer/loggers/notify.h"
#include "trainer/loggers/sink.h"
#include "trainer/plan/count_step_tokens.h"
#include "trainer/recipe/config_io.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/run/canonical_route.h"
#include "trainer/run/describe_run.h"
#include "trainer/run/enough_memory.h"
#include "trainer/run/inspect.h"
#include "trainer/run/native_errors.h"
#include "trainer/run/recipe_check.h"
#include "trainer/run/run_data.h"
#include "trainer/run_folder/restarts.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/saving/resume.h"
#include "trainer/train/run_length.h"

namespace tycho {
namespace {

/// Checks everything that can fail before the run folder is touched.
void look_around(RunParts& run, const RunRequest& request, const std::string& run_dir) {
  require_valid(run.config, run.world->size());
  set_threads(run.config.threads, request.place);
  run.device = choose_device(run.config.device, request.place.local_rank);
  if (run.world->rank() != 0) silence_product_notes();
  expect_tuned_products(run.config.products.tuned);
  require_flash_3(run.device, run.config);
  require_given_threads(run.config, run.device);
  run.memory_before = memory_bytes(run.device);
  const int64_t planned_bytes = require_memory(run.config, run.device, request);
  run.tokenizer_text = read_tokenizer(run.config, model_layout(run.config.model));
  run.chats = open_chats(run.config, *run.opened, run.stop);
  run.config.step_tokens = count_step_tokens(run.config, *run.opened);
  run.texts = open_texts(run.config, *run.opened);
  run.facts.run = describe_run(run.config, request, run.device, run_dir, *run.opened);
  if (planned_bytes > 0) run.facts.run.planned_memory_bytes = run.memory_before + planned_bytes;
  check_data(run.config, *run.opened);
  run.facts.rank = run.world->rank();
  run.facts.recipe = run.recipe;
  run.facts.num_layers = model_layout(run.config.model).num_blocks;
  run.facts.has_tokenizer = !run.tokenizer_text.empty();
  if (run.facts.has_tokenizer) run.tokenizer = load_tokenizer(run.config.tokenizer);
}

/// Reports once, while the owner of the folder is silent, that the run waits, and obeys a stop.
void wait_for_folder(const RunParts& run, const std::string& text, Reporter* display, bool& said) {
  if (display != nullptr && !std::exchange(said, true)) display->event("wait", text, Json::object());
  if (const int signal = run.stop; signal != 0)
    fail(static_cast<ExitCode>(128 + signal), "[lock] stopped while waiting for the run folder");
}

void own_folder(RunParts& run, const std::string& run_dir, const RunLock::Waiting& waiting) {
  run.lock =
      std::make_unique<RunLock>(real_files(), run_dir, RunLock::kStale_s, waiting, [&run, run_dir, waiting] {
        return std::max(newest_epoch(run_dir + "/checkpoints"),
                        take_place(run.remote, run.config, run_dir, waiting, run.stop));
      });
  run.files.emplace(real_files(), *run.lock);
  if (run.remote.lease) run.remote.lease->set_folder_owner(run.lock->uuid());
}

/// Makes rank 0 own the folder and write all its files.
void take_folder(RunParts& run, const std::string& run_dir, std::unique_ptr<Reporter> display) {
  if (run.world->rank() != 0) {
    run.reporter = std::make_unique<Reporter>();
    return;
  }
  bool said = false;
  require_own_folder(run_dir);
  own_folder(run, run_dir, [&](const std::string& text) { wait_for_folder(run, text, display.get(), said); });
  run.reporter = make_run_reporter(run_dir, run.config.log, std::move(display),
                                   make_notifiers(run.config.callbacks, run.config.run_name, run_dir),
                                   *run.files, stored_checkpoints(run.remote, run_dir));
}

/// Writes the record of a start once it has done a step, before any other record of that step. A failure is a
/// warning, as for other reporters, and it tries again after the next step.
class RecordAtFirstStep final : public Reporter {
 public:
  explicit RecordAtFirstStep(std::function<void()> write) : write_(std::move(write)) {}
  void step(const StepMetrics&, bool) override {
    if (!write_) return;
    write_();
    write_ = nullptr;
  }

 private:
  std::function<void()> write_;
};

/// Writes the record of a start: at once for the first one, and for a later one when a step is done. A start
/// that ends before that, or a finished run that is started again, leaves the record of what was trained.
void record_start(RunParts& run, const RunRequest& request, const std::string& run_dir,
                  const std::vector<CheckpointInfo>& candidates) {
  if (run.world->rank() != 0) return;
  const bool is_finished = !candidates.empty() && candidates.front().step >= run.facts.run.total_steps;
  if (!is_finished && !request.force) require_progress(run_dir, run.facts.run.first_step);
  auto write = [&files = *run.files, run_dir, request,
                versions = run_versions(run.device, run.config.precision)] {
    write_run_folder(files, run_dir, request, versions);
  };
  if (!holds_record(run_dir)) return write();
  std::vector<std::unique_ptr<Reporter>> reporters;
  reporters.push_back(std::make_unique<RecordAtFirstStep>(std::move(write)));
  reporters.push_back(std::move(run.reporter));
  run.reporter = make_tee(std::move(reporters));
}

/// Posts how a start ends that is not announced, unless another process owns the folder: that one is the run.
void notify_refusal(const RunParts& run, const std::string& run_dir, const Error& error) {
  if (run.world->rank() != 0 || error.code() == ExitCode::kFolderOwned) return;
  try {
    for (const auto& notifier : make_notifiers(run.config.callbacks, run.config.run_name, run_dir))
      notifier->run_end(std::string("failed: ") + error.what(), error.code());
  } catch (const Error&) {
    // The start ends with its own error, which says more.
  }
}

/// Adds a line to the folder of a run for a start that ends before it is announced there, unless another
/// process owns the folder.
void note_refusal(RunParts& run, const std::string& run_dir, const Error& error) {
  notify_refusal(run, run_dir, error);
  if (run.world->rank() != 0 || !holds_record(run_dir)) return;
  try {
    run.remote = {};  // the place in a store hears of starts that begin
    if (!run.files)
      own_folder(run, run_dir, [](const std::string& owner) { fail(ExitCode::kFolderOwned, "{}", owner); });
    std::vector<std::unique_ptr<Reporter>> record;
    record.push_back(make_file_reporter(run_dir, *run.files));
    make_tee(std::move(record))->run_end(std::string("failed: ") + error.what(), error.code());
  } catch (const Error&) {
    // The start ends with its own error, which says more.
  }
}

/// Makes the saver: rank 0 keeps the checkpoints; every rank writes its part of one.
std::unique_ptr<Saver> make_saver(RunParts& run) {
  std::optional<CheckpointStore> store;
  if (run.lock)
    store.emplace(*run.files, run.facts.run.run_dir + "/checkpoints", run.config.ckpt.keep, run.lock->epoch(),
                  [&lock = *run.lock] { lock.check(); });
  FileOps& files = run.files ? static_cast<FileOps&>(*run.files) : real_files();  // rank 0 holds the lock
  return std::make_unique<Saver>(std::move(store), run.config.ckpt,
                                 ranks_of_group(run.mesh->shape(), kCopyAxes, 0), files, *run.world,
                                 *run.reporter);
}

/// Initialises the weights, or loads the newest candidate that can be read.
void load_weights(RunParts& run, const std::vector<CheckpointInfo>& candidates) {
  if (candidates.empty()) return run.trainer->checkpoints().initialise();
  const CheckpointInfo loaded = run.trainer->checkpoints().resume(candidates);
  run.facts.checkpoint = loaded.path;
  run.facts.run = run.trainer->info();
  run.facts.run.first_step = loaded.step;
  require_same_checkpoint(*run.world, loaded);
  report_resume(loaded, run.recipe, compute_route(run.device, run.config.precision), *run.reporter);
  run.trainer->controls().report_held(*run.reporter);
  run.facts.asks_for_other = recipe_changes(loaded.manifest.at("recipe"), run.recipe, kOfTheProcess);
}

void make_trainer(RunParts& run, const RunRequest& request, const std::vector<CheckpointInfo>& candidates,
                  TrainingSession& session) {
  if (request.paranoid && run.world->size() == 1)
    run.reporter->event("warning", "--paranoid compares ranks, but this run has only one", Json::object());
  for (const std::string& note : speed_notes(run.device, run.config))
    run.reporter->event("warning", note, Json::object());
  if (const std::string text = fp8_text(decoder_spec(run.config.model)); !text.empty())
    run.reporter->event("fp8", text, Json::object());
  run.saver = make_saver(run);
  start_uploads(run.remote, run.config, run.facts.run.run_dir, *run.world, run.lock ? run.lock->epoch() : 0);
  run.saver->set_uploads(run.remote.uploads.get());
  CheckpointMeta meta =
      describe_checkpoints(run.config, request, run.device, run.mesh->shape(), run.tokenizer_text);
  if (const std::string text = used_template(run.chats); !text.empty()) meta.files[kChatTemplateFile] = text;
  run.callbacks = request.callbacks;
  if (run.callbacks != nullptr) run.callbacks->set_session(&session);
  TrainerContext context{{run.device, *run.world, *run.mesh, *run.reporter, run.stop, *run.opened},
                         *run.saver,
                         std::move(meta),
                         request.callbacks,
                         request.place.local_rank,
                         request.paranoid};
  context.num_nodes = request.place.num_nodes();
  context.until = request.until;
  if (run.lock) context.require_owner = [&lock = *run.lock] { lock.check_often(); };
  run.trainer = std::make_unique<Trainer>(run.config, run.facts.run, std::move(context));
  run.facts.is_sharded = run.trainer->is_shared();
  const ModelLayout layout = model_layout(run.config.model);
  run.params = list_params(layout, run.trainer->update().rules());
  run.places = list_places(layout);
  load_weights(run, candidates);
}

}  // namespace

RunParts meet_ranks(const RunRequest& request, const std::atomic<int>& stop, const WorldMaker& make_world) {
  const auto shared_dir = std::filesystem::absolute(run_folder_path(request.config)).parent_path();
  return {.recipe = config_to_json(request.config),
          .config = request.config,
          .stop = stop,
          .world = make_world(request.place, {.stop = &stop, .shared_dir = shared_dir},
                              sum_order(request.config))};
}

void open_run(RunParts& run, const RunRequest& request, std::unique_ptr<Reporter> display,
              TrainingSession& session) {
  const InPhase phase("opening the run");
  require_same_recipe(*run.world, request);
  const std::string run_dir = run_folder_path(run.config);
  try {
    together(*run.world, [&] { with_own_errors([&] { look_around(run, request, run_dir); }); });
  } catch (const std::exception& error) {
    note_refusal(run, run_dir, as_error(error));
    throw;
  }
  require_one_route(run.config, run.device, *run.world);
  run.world = with_device(std::move(run.world), run.device, sum_order(run.config));
  run.mesh.emplace(mesh_shape(run.config.parallel, run.world->size()), *run.world);
  together(*run.world, [&] {
    if (!run.config.ckpt.remote.empty())
      run.remote.checkpoints = open_remote_checkpoints(remote_place(run.config.ckpt, run.config.run_name));
    take_folder(run, run_dir, std::move(display));
  });
  bool is_announced = false;
  try {
    const std::vector<CheckpointInfo> candidates =
        resume_candidates(run.config, run_dir, *run.world, {run.remote.committed, run.remote.broken});
    if (!candidates.empty()) {
      run.facts.run.first_step = candidates.front().step;
      set_length(run.facts.run, run.config, request.until, clock_from(candidates.front(), run.config));
    }
    together(*run.world, [&] { record_start(run, request, run_dir, candidates); });
    run.world->keep_collectives_in(run_dir + "/" + kCollectivesFolder);
    run.reporter->run_start(run.facts.run);
    is_announced = true;
    report_chats(run.config, run.chats, candidates, *run.reporter);
    report_orders(run.config, *run.opened, run.facts.run.num_samples, *run.reporter);
    report_texts(run.texts, *run.reporter);
    report_tokenizer_of_weights(run.config, *run.reporter);
    with_own_errors([&] { make_trainer(run, request, candidates, session); });
  } catch (const std::exception& error) {
    const Error own = as_error(error);
    if (is_announced)
      run.reporter->run_end(std::string("failed: ") + own.what(), own.code());
    else
      note_refusal(run, run_dir, own);
    if (run.callbacks != nullptr) run.callbacks->set_session(nullptr);
    throw;
  }
}

}  // namespace tycho
