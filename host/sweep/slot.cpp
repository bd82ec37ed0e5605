// Starts a trial's process and judges how it ended.
#include "host/sweep/slot.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/base/text/json_number.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/run_folder/run_folder.h"

namespace tycho {
namespace {

constexpr auto kFolderPause = std::chrono::milliseconds(500);
constexpr auto kFolderPatience = std::chrono::seconds(120);
constexpr std::streamoff kTailBytes = 4096;

SweepDefinition without_trials(const SweepDefinition& definition) {
  return {.name = definition.name,
          .folder = definition.folder,
          .recipe = definition.recipe,
          .config = definition.config};
}

std::string output_file(const std::string& run_dir) { return run_dir + "/" + kOutputFile; }

std::string tail_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  file.seekg(std::max<std::streamoff>(0, file.tellg() - kTailBytes));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Returns the last message of the program, which begins with its [place]; the last line when there is none.
std::string last_message(const std::string& output) {
  size_t at = output.rfind("\n[");
  at = at == std::string::npos ? (output.starts_with('[') ? 0 : output.rfind('\n') + 1) : at + 1;
  return output.substr(at);
}

/// Refuses a link in the place of a trial's folder: it would lead writes and removals to another folder.
void refuse_link(const std::string& run_dir) {
  if (std::filesystem::is_symlink(run_dir))
    fail(ExitCode::kStorage, "[sweep] expected the folder of a trial at {}, got a link: remove it", run_dir);
}

}  // namespace

std::vector<std::string> trial_pins(const SweepDefinition& definition, const Trial& trial) {
  std::vector<std::string> pins;
  for (const auto& [key, value] : definition.config.pins) pins.push_back(key + "=" + value);
  pins.insert(pins.end(), trial.plan.pins.begin(), trial.plan.pins.end());
  if (trial.halved) pins.push_back(fmt::format("micro_batch={}sp", trial.micro_batch));
  return pins;
}

std::vector<std::string> trial_command(const SweepDefinition& definition, const Trial& trial,
                                       const std::string& sweep_dir) {
  std::vector<std::string> words = {"run", definition.recipe};
  const std::vector<std::string> pins = trial_pins(definition, trial);
  words.insert(words.end(), pins.begin(), pins.end());
  words.push_back(fmt::format("run_name={}-{}", definition.name, trial.number));
  words.push_back("run_dir=" + Board::run_dir(sweep_dir, trial));
  return words;
}

Slot::Slot(std::unique_ptr<Claim> claim, Task task, const Trial& trial, TrainConfig config,
           LaunchTarget place, const SweepDefinition& definition)
    : claim_(std::move(claim)),
      task_(std::move(task)),
      trial_(trial),
      config_(std::move(config)),
      place_(std::move(place)),
      definition_(without_trials(definition)),
      progress_(Board::run_dir(place_.sweep_dir, trial)),
      start_(Clock::now()) {
  progress_.update();
  first_step_ = progress_.step();
}

ChildCommand Slot::command() const {
  const std::string run_dir = Board::run_dir(place_.sweep_dir, trial_);
  ChildCommand command;
  command.own_group = true;  // Ctrl-C at the terminal is the worker's to pass on
  if (place_.use_srun) command.argv = {"srun"};
  command.argv.push_back(this_program());
  const std::vector<std::string> words = trial_command(definition_, trial_, place_.sweep_dir);
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  if (place_.threads > 0 && config_.threads == 0)
    command.argv.push_back(fmt::format("threads={}", place_.threads));
  command.argv.emplace_back("--plain");
  if (!task_.until.empty()) command.argv.insert(command.argv.end(), {"--until", task_.until});
  command.folder = definition_.folder;
  command.output = output_file(run_dir);
  // A worker that srun or tycho launch started is one of several; its trials are not. Those that srun starts
  // itself have a rank per task.
  if (!place_.use_srun) command.environment.emplace_back("TYCHO_NUM_RANKS", "1");
  if (!place_.gpus.empty()) command.environment.emplace_back("CUDA_VISIBLE_DEVICES", place_.gpus);
  return command;
}

std::optional<TrialEnd> Slot::launch() {
  const ChildCommand what = command();
  try {
    const std::string run_dir = Board::run_dir(place_.sweep_dir, trial_);
    refuse_link(run_dir);
    make_dirs(real_files(), run_dir);
    const std::string line = "$ " + without_secrets(shell_line(what.argv)) + "\n";
    real_files().append(what.output)->write(line.data(), line.size());
    process_ = std::make_unique<ChildProcess>(what);
  } catch (const Error& error) {
    return conclude(static_cast<int>(error.code()), error.what());
  }
  return {};
}

std::optional<TrialEnd> Slot::poll() {
  if (waits_for_folder_) {
    if (stopping_) return conclude(static_cast<int>(ExitCode::kTerminated));
    if (Clock::now() < launch_again_) return {};
    waits_for_folder_ = false;
    return launch();
  }
  const std::optional<ChildEnd> end = process_->poll();
  if (!end) return {};
  // The process of a worker that died is still saving.
  const bool folder_is_owned = end->code == static_cast<int>(ExitCode::kFolderOwned);
  const auto now = Clock::now();
  if (owned_since_ == Clock::time_point()) owned_since_ = now;
  if (!folder_is_owned || now - owned_since_ > kFolderPatience) return conclude(end->code);
  waits_for_folder_ = true;
  launch_again_ = now + kFolderPause;
  return {};
}

TrialEnd Slot::conclude(int exit_code, const std::string& message) {
  progress_.update();
  ProcessEnd process_end;
  process_end.exit_code = exit_code;
  process_end.message = message.empty()
                            ? last_message(tail_of(output_file(Board::run_dir(place_.sweep_dir, trial_))))
                            : message;
  process_end.stopped_by = rule_;
  process_end.leaving = stopping_ && rule_.empty();
  process_end.micro_batch = micro_batch_sequences(config_);
  process_end.at_last_rung = true;
  if (const auto* asha = std::get_if<AshaSearch>(&definition_.config.search.value);
      asha && trial_.finalist.empty())
    process_end.at_last_rung = task_.rung + 1 >= static_cast<int64_t>(asha->rungs.size());
  process_end.steps_gained = progress_.step() - first_step_;
  const std::string& metric = definition_.config.metric.name;
  const RungResult result = rung_result(progress_, metric);
  if (result.value && !std::isfinite(*result.value))
    process_end.not_finite = fmt::format("{} is {}", metric, not_finite_text(*result.value));
  TrialEnd end = judge(trial_, process_end);
  end.result = result;
  if (end.note.starts_with("diverged")) end.result.value.reset();
  end.wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
  return end;
}

void Slot::stop(const std::string& rule) {
  if (stopping_) return;
  stopping_ = true;
  rule_ = rule;
  if (process_) process_->send(SIGTERM);
}

}  // namespace tycho
