// An engine that pretends to train, in milliseconds: the loss is a function of the learning rate and the
// step, every step is saved, and steps.txt counts each that was done; ranks holds TYCHO_NUM_RANKS; sets of
// eval_data like 1e-2 best. What fails and when is in the recipe:
//   optimizer.lr > 1: diverges at step 5          micro_batch above 4sp with beta 0.5: out of memory
//   TYCHO_FULL_AT_STOP: storage is full when it is asked to stop
//   weight_decay 9: storage is full               weight_decay 8: the data cannot be read, on the first try
//   weight_decay 7: the evaluation is NaN
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/text/json_number.h"
#include "trainer/lock/run_lock.h"
#include "trainer/loggers/sink.h"
#include "trainer/recipe/config_io.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/session/engine.h"

namespace {

using namespace tycho;
namespace fs = std::filesystem;

int64_t saved_step(const std::string& run_dir) {
  std::ifstream file(run_dir + "/saved");
  int64_t step = 0;
  file >> step;
  return step;
}

void fail_as_asked(const AdamWConfig& optimizer, const TrainConfig& config, int64_t step,
                   const std::string& run_dir) {
  if (optimizer.lr > 1 && step == 5)
    throw Error("[trainer] loss nan at step 5: training has diverged", ExitCode::kNumerics);
  if (optimizer.betas[0] == 0.5 && config.micro_batch && config.micro_batch->value > 4)
    throw Error("[kernels] out of memory: expected 80 GiB", ExitCode::kNumerics);
  if (optimizer.weight_decay == 9)
    throw Error("[files] cannot write x: No space left on device", ExitCode::kStorage);
  if (optimizer.weight_decay == 8 && !fs::exists(run_dir + "/failed-once")) {
    std::ofstream(run_dir + "/failed-once") << "yes";
    throw Error("[mds] shard 3 is cut", ExitCode::kUnusable);
  }
}

int run(const RunRequest& request, bool, const StopFlag& stop) {
  const TrainConfig& config = request.config;
  const std::string run_dir = run_folder_path(config);
  const AdamWConfig& optimizer = config.optimizer.as<AdamWConfig>();
  make_dirs(real_files(), run_dir);
  RunLock lock(real_files(), run_dir);
  write_run_folder(real_files(), run_dir, request, Json::object());
  if (const char* ranks = std::getenv("TYCHO_NUM_RANKS")) std::ofstream(run_dir + "/ranks") << ranks << "\n";
  const auto reporter = make_run_reporter(run_dir, config.log, nullptr);
  reporter->run_start({});
  const int64_t total = total_steps(config, 0);
  const int64_t until = request.until.empty()
                            ? total
                            : std::min(total, static_cast<int64_t>(Duration::parse(request.until).value));
  const char* pause = std::getenv("TYCHO_STEP_MS");
  int64_t step = saved_step(run_dir);
  const auto loss_at = [&](int64_t s) {
    const double distance = std::log10(optimizer.lr / 1e-3);
    return 2 + distance * distance + 4 * std::exp(-0.1 * static_cast<double>(s)) +
           0.001 * static_cast<double>(config.seed % 7);
  };
  try {
    while (step < until && stop == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(pause ? std::atoi(pause) : 1));
      ++step;
      fail_as_asked(optimizer, config, step, run_dir);
      StepMetrics metrics;
      metrics.step = step, metrics.tokens = 100 * step, metrics.loss = loss_at(step);
      reporter->step(metrics, true);
      std::ofstream(run_dir + "/steps.txt", std::ios::app) << step << "\n";
      write_file_atomically(real_files(), run_dir + "/saved", std::to_string(step));
    }
  } catch (const std::exception& error) {
    reporter->run_end(std::string("failed: ") + error.what(), ExitCode::kFailure);
    throw;
  }
  if (stop != 0 && std::getenv("TYCHO_FULL_AT_STOP") != nullptr)
    throw Error("[files] cannot write x: No space left on device", ExitCode::kStorage);
  if (stop == 0) {
    for (const auto& [name, data] : config.eval_data)
      reporter->event(
          "eval", "evaluated",
          {{"loss", std::abs(std::log10(optimizer.lr / 1e-2))}, {"name", name}, {"total", false}});
    Json facts = {{"total", true}};
    set_number(facts, "loss", optimizer.weight_decay == 7 ? NAN : loss_at(step) + 0.01);
    reporter->event("eval", "evaluated", facts);
  }
  reporter->run_end("done", {});
  return stop == 0 ? 0 : 128 + stop;
}

std::string versions() { return R"({"libtorch": "none"})"; }

}  // namespace

extern "C" __attribute__((visibility("default"))) const tycho::EngineApi* tycho_engine_api() {
  static const EngineApi api = {.run = run, .versions = versions};
  return &api;
}
