// File systems, the engine, Slurm, Lua, and a project's own checks.
#include <sys/statvfs.h>
#include <unistd.h>

#include <luajit.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "bindings/define/recipe.h"
#include "host/doctor/finding.h"
#include "host/engine.h"
#include "host/signals.h"
#include "trainer/base/bytes.h"
#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/seconds_since.h"
#include "trainer/base/text/without_place.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr size_t kProbeBytes = size_t{32} << 20;
constexpr double kSlowBytesPerS = 100e6, kLittleBytes = 10e9;

fs::path existing_parent(fs::path path) {
  path = fs::absolute(path);
  while (!fs::is_directory(path) && path.has_parent_path() && path != path.root_path())
    path = path.parent_path();
  return path;
}

/// Returns what CUDA says of GPUs; nothing for a build without CUDA.
std::vector<Finding> gpu_findings(const Json& versions) {
  if (!versions.contains("gpus")) return {};
  const std::string problem = versions.value("gpu_problem", "");
  if (problem.empty()) {
    const std::string none = versions.value("nvrtc_problem", ""), path = versions.value("flash_attn_3", ""),
                      no_flash = versions.value("flash_attn_3_problem", "");
    return {{"cuda", Health::kOk, fmt::format("{} GPUs", versions.value("gpus", 0)), ""},
            no_flash.empty() ? Finding{"flash_attn_3", Health::kOk, path.empty() ? "not found" : path, ""}
                             : Finding{"flash_attn_3", Health::kWarn, no_flash,
                                       "runs with attention.flash = 2 do not need it"},
            none.empty() ? Finding{"nvrtc", Health::kOk,
                                   fmt::format("{} in {}", versions.value("nvrtc", "?"),
                                               versions.value("nvrtc_path", "?")),
                                   ""}
                         : Finding{"nvrtc", Health::kWarn, none,
                                   "runs without mathematics written in Lua do not need it"}};
  }
  if (!versions.value("has_driver", false)) return {{"cuda", Health::kOk, problem, ""}};
  return {{"cuda", Health::kFail, problem, "runs with device = \"auto\" train on the CPU until then"}};
}

/// Returns the bytes per second of a durable write.
double write_speed(const fs::path& file) {
  const std::string block(kProbeBytes, 'x');
  const auto start = std::chrono::steady_clock::now();
  const auto out = real_files().create(file.string());
  out->write(block.data(), block.size());
  out->sync();
  out->close();
  return kProbeBytes / seconds_since(start);
}

}  // namespace

std::vector<Finding> check_disk(const std::string& folder) {
  const fs::path place = existing_parent(folder);
  const fs::path probe = place / fmt::format(".tycho-doctor-{}", getpid()), second = probe.string() + "-link";
  std::vector<Finding> findings;
  struct statvfs info = {};
  if (statvfs(place.c_str(), &info) == 0) {
    const double free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
    findings.push_back(
        {"disk space", free > kLittleBytes ? Health::kOk : Health::kWarn,
         fmt::format("{} free in {}", human_bytes(free), place.string()),
         free > kLittleBytes
             ? ""
             : "checkpoints need space: `tycho plan RECIPE` shows how much; run_dir=PATH moves them"});
  }
  try {
    const double speed = write_speed(probe);
    findings.push_back({"disk speed", speed > kSlowBytesPerS ? Health::kOk : Health::kWarn,
                        human_bytes(speed) + "/s, written durably",
                        speed > kSlowBytesPerS
                            ? ""
                            : "checkpoints will be slow: save less often (ckpt.every), or elsewhere"});
    const bool linked = real_files().link(probe.string(), second.string());
    findings.push_back(
        {"file links", linked ? Health::kOk : Health::kWarn, linked ? "work" : "do not work", ""});
  } catch (const Error& error) {
    findings.push_back(
        {"disk", Health::kFail, without_place(error.what()), "choose another folder with run_dir=PATH"});
  }
  std::error_code ignored;
  fs::remove(probe, ignored);
  fs::remove(second, ignored);
  return findings;
}

std::vector<Finding> check_engine() {
  try {
    const Json versions = Json::parse(open_engine(0).versions());
    std::string text = "LibTorch " + versions.value("libtorch", "?");
    for (const char* key : {"cpu_capability", "kernels"})
      if (versions.contains(key)) text += fmt::format(", {} {}", key, versions[key].get<std::string>());
    const std::string problem = versions.value("libtorch_problem", "");
    std::vector<Finding> findings = gpu_findings(versions);
    findings.insert(findings.begin(),
                    {"engine", problem.empty() ? Health::kOk : Health::kFail, text, problem});
    return findings;
  } catch (const Error& error) {
    return {{"engine", Health::kFail, without_place(error.what()),
             "`scripts/setup` installs LibTorch; build the target tycho_engine"}};
  }
}

std::vector<Finding> check_slurm() {
  const std::string job = environment_variable("SLURM_JOB_ID");
  if (job.empty()) return {{"slurm", Health::kOk, "not inside a job", ""}};
  std::string text = fmt::format("job {}, {} nodes", job, environment_variable("SLURM_JOB_NUM_NODES"));
  if (const std::string end = environment_variable("SLURM_JOB_END_TIME"); !end.empty()) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const double left = std::stod(end) - std::chrono::duration<double>(now).count();
    text += fmt::format(", {:.0f} minutes left", left / 60);
  }
  const bool alone = environment_variable("SLURM_STEP_ID").empty();
  return {{"slurm", alone ? Health::kWarn : Health::kOk, text,
           alone ? "this is the batch script: start runs with srun to use all tasks" : ""}};
}

std::vector<Finding> check_lua() {
  std::vector<Finding> findings = {
      {"lua", Health::kOk, LUAJIT_VERSION ", compiler off, so that Ctrl-C always ends a recipe", ""}};
  std::istringstream folders(environment_variable("TYCHO_PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const bool there = fs::is_directory(folder);
    findings.push_back({"recipe path", there ? Health::kOk : Health::kWarn,
                        folder + (there ? "" : " is not a folder"),
                        there ? "" : "TYCHO_PATH names it: correct it there"});
  }
  return findings;
}

std::vector<Finding> check_own() {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("doctor", error))
    if (entry.path().extension() == ".lua") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  if (files.empty()) return {};
  const InterruptLua interruptible;
  std::vector<Finding> findings;
  for (const Json& one : run_doctor_files(files)) {
    const std::string level = one.at("level");
    findings.push_back({one.at("subject"),
                        level == "ok"     ? Health::kOk
                        : level == "warn" ? Health::kWarn
                                          : Health::kFail,
                        one.at("text"), one.value("advice", "")});
  }
  return findings;
}

}  // namespace tycho
