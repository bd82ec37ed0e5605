// One run from request to exit.
#include "trainer/run.h"

#include <ATen/Version.h>
#include <c10/core/InferenceMode.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "trainer/base/error.h"
#include "trainer/checkpoint/run_lock.h"
#include "trainer/config_io.h"
#include "trainer/data/conversion_note.h"
#include "trainer/data/tokenizer.h"
#include "trainer/device.h"
#include "trainer/kernels/kernel_table.h"
#include "trainer/metrics/curve.h"
#include "trainer/metrics/device_peak.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/restore/initial_weights.h"
#include "trainer/resume.h"
#include "trainer/trainer.h"

namespace tycho {
namespace {

// The text of the tokenizer's file, after checking it against model and data; "" when the recipe names none.
std::string read_tokenizer(const TrainConfig& config, const ModelLayout& layout) {
  if (config.tokenizer.empty()) return "";
  std::string text = read_file(config.tokenizer);
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_from_text(text, config.tokenizer);
  if (tokenizer->size() > layout.vocab_size)
    fail(ExitCode::kUnusable,
         "[tokenizer] {} has {} tokens, the model {}: set model.vocab_size to at least {}", config.tokenizer,
         tokenizer->size(), layout.vocab_size, tokenizer->size());
  check_tokenizer(config.train_data.as<MdsConfig>().dir(), *tokenizer, config.tokenizer);
  if (config.eval.data)
    check_tokenizer(config.eval.data->as<MdsConfig>().dir(), *tokenizer, config.tokenizer);
  return text;
}

/// The step of request.until; nothing when the run goes to its end.
std::optional<int64_t> until_step(const TrainConfig& config, const RunRequest& request, const RunInfo& info) {
  if (request.until.empty()) return {};
  const double steps = in_steps(Duration::parse(request.until), config, info.total_steps, info.num_samples);
  const auto step = static_cast<int64_t>(std::ceil(steps));
  return step < info.total_steps ? std::optional(std::max<int64_t>(step, 1)) : std::nullopt;
}

RunInfo describe_run(const TrainConfig& config, const RunRequest& request, const at::Device& device,
                     const std::string& run_dir) {
  const ModelLayout layout = model_layout(config.model);
  RunInfo info;
  info.run_name = config.run_name;
  info.run_dir = run_dir;
  info.device = device_name(device);
  info.precision = config.precision == Precision::kBf16 ? "bf16" : "fp32";
  info.recipe_hash = request.recipe_hash;
  info.pins = request.pins;
  info.num_samples = count_samples(config.train_data);
  info.total_steps = total_steps(config, info.num_samples);
  info.total_tokens = info.total_steps * global_batch_sequences(config) * config.seq_len;
  info.until_step = until_step(config, request, info);
  info.num_params = layout.num_params();
  info.device_memory_bytes = device_memory_bytes(device);
  info.flops_per_token_full = layout.flops_per_token_full(config.seq_len);
  info.flops_per_token_causal = layout.flops_per_token_causal(config.seq_len);
  info.peak_flops = device_peak_flops(info.device, config.precision);
  return info;
}

std::unique_ptr<Reporter> make_reporter(const std::string& run_dir, bool tty) {
  std::vector<std::unique_ptr<Reporter>> reporters;
  reporters.push_back(make_file_reporter(run_dir));
  reporters.push_back(tty ? make_terminal_reporter(STDOUT_FILENO) : make_plain_reporter(STDOUT_FILENO));
  return make_tee(std::move(reporters));
}

void report_resume(const CheckpointInfo& checkpoint, const Json& recipe, Reporter& reporter) {
  const std::string conflicts = recipe_conflicts(checkpoint.manifest.at("recipe"), recipe);
  reporter.event("resume", fmt::format("resumed from step {} ({})", checkpoint.step, checkpoint.path),
                 {{"step", checkpoint.step}, {"path", checkpoint.path}});
  if (!conflicts.empty())
    reporter.event("warning",
                   "the recipe differs from the checkpoint's (checkpoint -> recipe, which wins):" + conflicts,
                   {{"step", checkpoint.step}});
}

std::string end_text(int signal, const TrainState& state, const RunInfo& info) {
  if (signal == 0 && state.step < info.total_steps)
    return fmt::format("paused after step {} of {}, saved; the same command goes on from there", state.step,
                       info.total_steps);
  if (signal == 0) return fmt::format("done, {} steps", state.step);
  return fmt::format("stopped by SIG{} after step {}, saved; the same command goes on from there",
                     sigabbrev_np(signal), state.step);
}

void draw_losses(const std::string& run_dir) {
  const PlotOptions options = {.unicode = locale_is_utf8(), .title = "loss", .x_label = "step"};
  fmt::print("\n{}", plot(read_curve(run_dir + "/metrics.jsonl", "loss"), options));
}

}  // namespace

int run_training(const RunRequest& request, bool tty, const std::atomic<int>& stop) {
  // The backward pass is ours: ATen need not keep books for autograd.
  const c10::InferenceMode no_autograd;
  const Json recipe = parse_json(request.config_json, "recipe");
  const TrainConfig config = read_config_or_fail(recipe);
  const std::string run_dir = run_folder_path(config);
  const std::string tokenizer = read_tokenizer(config, model_layout(config.model));
  set_threads(config.threads);
  const at::Device device = choose_device(config.device);
  RunInfo info = describe_run(config, request, device, run_dir);

  FileOps& files = real_files();
  make_dirs(files, run_dir);
  RunLock lock(files, run_dir);
  write_run_folder(files, run_dir, request, engine_versions());
  const std::unique_ptr<Reporter> reporter = make_reporter(run_dir, tty);
  const std::vector<CheckpointInfo> candidates = resume_candidates(config, run_dir);
  if (!candidates.empty()) info.first_step = candidates.front().step;
  reporter->run_start(info);
  try {
    if (const std::string note = precision_note(device, config.precision); !note.empty())
      reporter->event("warning", note, Json::object());
    CheckpointStore store(files, run_dir + "/checkpoints", config.ckpt.keep, lock.epoch(),
                          [&lock] { lock.check(); });
    Saver saver(std::move(store), config.ckpt.async, *reporter);
    const std::unique_ptr<Communicator> world = make_world_of_one();
    CheckpointMeta meta{.recipe = recipe, .recipe_hash = request.recipe_hash};
    if (const std::string& weights = initial_weights_path(config.model); !weights.empty())
      meta.files = files_beside_weights(weights);
    if (!tokenizer.empty()) meta.files["tokenizer.json"] = tokenizer;
    Trainer trainer(config, info, {device, *world, *reporter, saver, std::move(meta), stop});
    if (candidates.empty())
      trainer.initialise();
    else
      report_resume(trainer.resume(candidates), recipe, *reporter);
    const int signal = trainer.fit();
    reporter->run_end(end_text(signal, trainer.state(), info));
    if (config.log.plot && signal == 0) draw_losses(run_dir);
    return signal == 0 ? 0 : 128 + signal;
  } catch (const std::exception& error) {
    reporter->run_end(std::string("failed: ") + error.what());
    throw;
  }
}

Json engine_versions() {
  return {{"libtorch", TORCH_VERSION},
          {"cpu_capability", at::get_cpu_capability()},
          {"kernels", cpu_kernels().name}};
}

}  // namespace tycho
