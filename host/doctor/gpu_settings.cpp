// Persistence mode and clocks of GPUs, through nvidia-smi: NVML would be one more library to load.
#include "host/doctor/gpu_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <sstream>

#include "host/process/child_process.h"
#include "trainer/base/error.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

constexpr int kNoProgram = 127;
constexpr std::chrono::seconds kPatience{20};  // without persistence mode the driver is loaded first
constexpr size_t kMostAnswerBytes = 1 << 20;

struct GpuSettings {
  std::string index, persistence;
  std::optional<int> max_sm, max_memory, app_sm, app_memory;  // MHz
};

/// Returns nullopt for "[N/A]" and the like.
std::optional<int> mhz_of(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::vector<GpuSettings> read_settings(const std::string& answer) {
  std::vector<GpuSettings> gpus;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) {
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(" \r") + 1);
      cells.push_back(cell);
    }
    if (cells.size() != 6 || !mhz_of(cells[0])) continue;
    gpus.push_back(
        {cells[0], cells[1], mhz_of(cells[2]), mhz_of(cells[3]), mhz_of(cells[4]), mhz_of(cells[5])});
  }
  return gpus;
}

Finding persistence_finding(const std::vector<GpuSettings>& gpus) {
  std::vector<std::string> off;
  for (const GpuSettings& gpu : gpus)
    if (gpu.persistence != "Enabled") off.push_back(gpu.index);
  if (off.empty()) return {"persistence", Health::kOk, "enabled on every GPU", ""};
  return {
      "persistence", Health::kWarn, fmt::format("not enabled on GPU {}", fmt::join(off, ", ")),
      "`sudo nvidia-smi -pm 1` keeps the driver loaded between runs: they start sooner, and clocks that were "
      "set stay"};
}

/// Returns nullopt where the driver does not report application clocks.
std::optional<Finding> clocks_finding(const std::vector<GpuSettings>& gpus) {
  std::vector<std::string> low;
  std::string advice, now;
  for (const GpuSettings& gpu : gpus) {
    if (!gpu.max_sm || !gpu.app_sm) continue;
    if (now.empty()) now = fmt::format("applications run at up to {} MHz", *gpu.app_sm);
    if (*gpu.app_sm >= *gpu.max_sm) continue;
    low.push_back(fmt::format("GPU {}: {} of {} MHz", gpu.index, *gpu.app_sm, *gpu.max_sm));
    advice = fmt::format(
        "`sudo nvidia-smi -ac {},{}` lets applications use the highest, and `sudo nvidia-smi -lgc "
        "{}` fixes it for measurements",
        gpu.max_memory.value_or(gpu.app_memory.value_or(0)), *gpu.max_sm, *gpu.max_sm);
  }
  if (now.empty()) return std::nullopt;
  if (low.empty()) return Finding{"gpu clocks", Health::kOk, now, ""};
  return Finding{"gpu clocks", Health::kWarn, fmt::format("{}", fmt::join(low, "; ")), advice};
}

}  // namespace

std::vector<Finding> gpu_settings_findings(const std::string& answer) {
  const std::vector<GpuSettings> gpus = read_settings(answer);
  if (gpus.empty()) return {};
  std::vector<Finding> findings = {persistence_finding(gpus)};
  if (std::optional<Finding> clocks = clocks_finding(gpus)) findings.push_back(std::move(*clocks));
  return findings;
}

std::vector<Finding> check_gpu_settings() {
  ChildCommand command;
  command.argv = {"nvidia-smi", fmt::format("--query-gpu={}", kGpuSettingsQuery),
                  "--format=csv,noheader,nounits"};
  command.is_piped = true;
  try {
    const std::optional<ChildAnswer> answer = ask_process(command, kPatience, kMostAnswerBytes);
    if (!answer)
      return {{"gpu settings", Health::kWarn, "nvidia-smi does not answer within 20 s",
               "look for \"NVRM\" in `dmesg`: a GPU may have failed"}};
    if (answer->end.code == kNoProgram) return {};  // no GPU, or a container without the program
    if (answer->end.code != 0) {
      const std::string said = printable(answer->output.substr(0, answer->output.find('\n')), true);
      return {{"gpu settings", Health::kWarn, "nvidia-smi fails: " + said,
               "run it by hand; without GPUs in this job that is to be expected"}};
    }
    return gpu_settings_findings(answer->output);
  } catch (const Error& error) {
    return {{"gpu settings", Health::kWarn, error.what(), "run nvidia-smi by hand"}};
  }
}

}  // namespace tycho
