// Finds LibTorch where pip puts it, and checks that it is the one that the engine was built for.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tycho {

/// The facts about a LibTorch that stand beside its libraries.
struct TorchFacts {
  std::string version;  // "2.11.0+cu130"
  std::string cuda;     // "13.0"; "" for one without CUDA
};

/// Returns the facts of a folder with lib/libtorch_cpu.so, from version.py of a wheel or build-version of an
/// archive; nullopt when it has neither.
std::optional<TorchFacts> read_torch_facts(const std::filesystem::path& torch);

/// The LibTorch that a program was built for.
struct TorchNeed {
  std::string version;     // "2.11"
  std::string cuda_major;  // "13"; "" for a program without CUDA
};

/// Returns why a LibTorch cannot serve the engine and what to do; "" when it can, and when nothing says which
/// one it is. One without CUDA can.
std::string torch_problem(const std::filesystem::path& torch, const TorchNeed& need);

/// Returns every folder "torch" with lib/libtorch_cpu.so that pip may have installed for a program in
/// `prefix`/bin: in the same prefix first (a virtual environment, ~/.local, /usr/local, `pip --target`), then
/// in the environment's base when it uses the system's packages, the user's packages and the system's.
/// `root` is put before absolute paths; tests use it.
std::vector<std::filesystem::path> installed_torches(const std::filesystem::path& prefix,
                                                     const std::filesystem::path& user_base,
                                                     const std::filesystem::path& root = "/");

}  // namespace tycho
